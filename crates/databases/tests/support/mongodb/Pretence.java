import de.bwaldvogel.mongo.bson.BinData;
import de.bwaldvogel.mongo.bson.Document;
import io.netty.channel.Channel;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import javax.crypto.Mac;
import javax.crypto.SecretKeyFactory;
import javax.crypto.spec.PBEKeySpec;
import javax.crypto.spec.SecretKeySpec;

/**
 * Features that the stand-in does not have and simulates: accounts, and answers of a MongoDB with a given configuration.
 *
 * <p>The command `pretend` has `answers` by command, and `password` (of all accounts, by SCRAM) or `certificates` if a login is
 * required. Clients that have not logged in are then refused every command except those that a MongoDB serves to all and those
 * in `open`, unless `asks` is false.
 */
final class Pretence {
  private static final Set<String> SERVED_TO_ALL =
      Set.of("pretend", "ping", "hello", "ismaster", "buildinfo", "saslstart", "saslcontinue", "authenticate", "endsessions");
  private static final byte[] SALT = "of the stand-in.".getBytes(StandardCharsets.UTF_8);
  private static final int ITERATIONS = 4096;

  private volatile Document told = new Document();
  private final Map<Channel, Scram> dialogues = new ConcurrentHashMap<>();
  private final Set<Channel> known = ConcurrentHashMap.newKeySet();

  /** The answer to `command`, or null if the stand-in answers by itself. */
  Document answer(Channel channel, String command, Document query) {
    String name = command.toLowerCase();
    switch (name) {
      case "pretend":
        told = query;
        return ok();
      case "saslstart":
      case "saslcontinue":
        return told.containsKey("password") ? login(channel, query) : null;
      case "authenticate":
        if (!told.containsKey("certificates")) {
          return null;
        }
        known.add(channel);
        return ok();
      default:
    }
    boolean asks =
        (told.containsKey("password") || told.containsKey("certificates")) && !Boolean.FALSE.equals(told.get("asks"));
    boolean open = told.get("open") instanceof List<?> names && names.contains(command);
    if (asks && !open && !SERVED_TO_ALL.contains(name) && !known.contains(channel)) {
      return new Document("ok", 0.0)
          .append("errmsg", "command " + command + " requires authentication")
          .append("code", 13)
          .append("codeName", "Unauthorized");
    }
    if (told.get("answers") instanceof Document answers && answers.get(command) instanceof Document answer) {
      return answer.containsKey("ok") ? answer.cloneDeeply() : answer.cloneDeeply().append("ok", 1.0);
    }
    if (name.equals("connectionstatus") && known.contains(channel)) {
      Document root = new Document("role", "root").append("db", "admin");
      return ok().append("authInfo", new Document("authenticatedUserRoles", List.of(root)));
    }
    return null;
  }

  private static Document ok() {
    return new Document("ok", 1.0);
  }

  /** One step of SCRAM (RFC 5802), as MongoDB's drivers expect it. */
  private Document login(Channel channel, Document query) {
    try {
      String payload = new String(((BinData) query.get("payload")).getData(), StandardCharsets.UTF_8);
      if (query.containsKey("mechanism")) {
        Scram scram = new Scram((String) query.get("mechanism"), payload.substring("n,,".length()));
        dialogues.put(channel, scram);
        return step(scram.first(), false);
      }
      if (payload.isEmpty()) {
        return step("", true);
      }
      String said = dialogues.remove(channel).last(payload, (String) told.get("password"));
      known.add(channel);
      return step(said, query.containsKey("options"));
    } catch (Exception error) {
      return new Document("ok", 0.0).append("errmsg", "Authentication failed.").append("code", 18);
    }
  }

  private static Document step(String payload, boolean done) {
    return ok()
        .append("conversationId", 1)
        .append("done", done)
        .append("payload", new BinData(payload.getBytes(StandardCharsets.UTF_8)));
  }

  /** The server's side of one login. */
  private static final class Scram {
    private final String hash;
    private final String begun;
    private final String user;
    private final String nonce;

    Scram(String mechanism, String begun) {
      this.hash = mechanism.equals("SCRAM-SHA-1") ? "SHA1" : "SHA256";
      this.begun = begun;
      this.user = begun.substring("n=".length(), begun.indexOf(",r="));
      this.nonce = begun.substring(begun.indexOf(",r=") + 3) + "standin";
    }

    String first() {
      return "r=" + nonce + ",s=" + Base64.getEncoder().encodeToString(SALT) + ",i=" + ITERATIONS;
    }

    String last(String payload, String password) throws Exception {
      String text = hash.equals("SHA1") ? digested(user + ":mongo:" + password) : password;
      PBEKeySpec spec = new PBEKeySpec(text.toCharArray(), SALT, ITERATIONS, hash.equals("SHA1") ? 160 : 256);
      byte[] salted = SecretKeyFactory.getInstance("PBKDF2WithHmac" + hash).generateSecret(spec).getEncoded();
      String without = payload.substring(0, payload.indexOf(",p="));
      String all = begun + "," + first() + "," + without;
      byte[] client = mac(salted, "Client Key");
      byte[] stored = MessageDigest.getInstance(hash.equals("SHA1") ? "SHA-1" : "SHA-256").digest(client);
      byte[] proof = mac(stored, all);
      for (int at = 0; at < proof.length; at++) {
        proof[at] ^= client[at];
      }
      if (!payload.equals(without + ",p=" + Base64.getEncoder().encodeToString(proof))) {
        throw new SecurityException("a wrong password");
      }
      return "v=" + Base64.getEncoder().encodeToString(mac(mac(salted, "Server Key"), all));
    }

    private byte[] mac(byte[] key, String text) throws Exception {
      Mac mac = Mac.getInstance("Hmac" + hash);
      mac.init(new SecretKeySpec(key, mac.getAlgorithm()));
      return mac.doFinal(text.getBytes(StandardCharsets.UTF_8));
    }

    private static String digested(String text) throws Exception {
      byte[] bytes = MessageDigest.getInstance("MD5").digest(text.getBytes(StandardCharsets.UTF_8));
      StringBuilder hex = new StringBuilder();
      for (byte one : bytes) {
        hex.append(String.format("%02x", one));
      }
      return hex.toString();
    }
  }
}
