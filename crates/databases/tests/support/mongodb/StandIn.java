import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.wire.message.MongoMessage;
import io.netty.channel.Channel;
import java.io.ByteArrayInputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyFactory;
import java.security.PrivateKey;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Base64;
import java.util.List;
import org.h2.mvstore.MVStore;

/**
 * A server that uses MongoDB's protocol and is not MongoDB: mongo-java-server over a file of H2.
 *
 * <p>It reports the lowest wire version that the driver accepts, which is one above its own, and its build information states
 * that it is a stand-in. Arguments: the file, a port, for TLS a certificate and a key (PEM), and then `optional` if it also
 * serves plaintext. The command `pretend` configures what it simulates ({@link Pretence}).
 */
public final class StandIn {
  /** The oldest version that the driver of the tests supports: MongoDB 4.2. */
  private static final MongoVersion REPORTED =
      new MongoVersion() {
        @Override
        public List<Integer> getVersionArray() {
          return List.of(4, 2, 0);
        }

        @Override
        public int getWireVersion() {
          return 8;
        }
      };

  private static final String NAME = "mongo-java-server " + System.getProperty("standin.version");

  public static void main(String[] arguments) throws Exception {
    MVStore store = new MVStore.Builder().fileName(arguments[0]).autoCommitDisabled().open();
    H2Backend backend =
        new H2Backend(store) {
          private final Pretence pretence = new Pretence();

          @Override
          public Document handleCommand(Channel channel, String database, String command, Document query) {
            if (command.equals("fsync")) {
              commit();
              return new Document("ok", 1.0);
            }
            Document pretended = pretence.answer(channel, command, query);
            return pretended != null ? pretended : named(command, super.handleCommand(channel, database, command, query));
          }

          @Override
          public Document handleMessage(MongoMessage message) {
            Document document = message.getDocument();
            String command = document.keySet().iterator().next();
            if (command.equals("fsync")) {
              commit();
              return new Document("ok", 1.0);
            }
            Document pretended = pretence.answer(message.getChannel(), command, document);
            return pretended != null ? pretended : named(command, super.handleMessage(message));
          }
        };
    backend.version(REPORTED);
    MongoServer server = new MongoServer(backend);
    if (arguments.length > 2) {
      server.enableSsl(key(arguments[3]), null, certificate(arguments[2]));
    }
    int port = Integer.parseInt(arguments[1]);
    if (arguments.length > 4) {
      Door.open(port, server.bind().getPort(), new MongoServer(backend).bind().getPort());
    } else {
      server.bind("127.0.0.1", port);
    }
    Runtime.getRuntime()
        .addShutdownHook(
            new Thread(
                () -> {
                  server.shutdown();
                  store.close();
                }));
    Thread.currentThread().join();
  }

  private static Document named(String command, Document answer) {
    return command.equalsIgnoreCase("buildInfo") ? answer.append("standIn", NAME) : answer;
  }

  private static byte[] decoded(String file) throws Exception {
    String text = Files.readString(Path.of(file));
    return Base64.getDecoder().decode(text.replaceAll("-----[^-]+-----", "").replaceAll("\\s", ""));
  }

  private static PrivateKey key(String file) throws Exception {
    return KeyFactory.getInstance("EC").generatePrivate(new PKCS8EncodedKeySpec(decoded(file)));
  }

  private static X509Certificate certificate(String file) throws Exception {
    ByteArrayInputStream bytes = new ByteArrayInputStream(decoded(file));
    return (X509Certificate) CertificateFactory.getInstance("X.509").generateCertificate(bytes);
  }

  private StandIn() {}
}
