import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;

/** One port for TLS and plaintext, as with net.tls.mode allowTLS and preferTLS: the first byte shows which is used. */
final class Door {
  private static final int HANDSHAKE = 0x16;

  /** Listens at `port`, and leads each connection to `tls` or `plain`. */
  static void open(int port, int tls, int plain) throws Exception {
    ServerSocket listener = new ServerSocket(port, 50, InetAddress.getLoopbackAddress());
    background(
        () -> {
          while (true) {
            Socket client = listener.accept();
            background(() -> lead(client, tls, plain));
          }
        });
  }

  private static void lead(Socket client, int tls, int plain) throws Exception {
    int first = client.getInputStream().read();
    if (first < 0) {
      client.close();
      return;
    }
    Socket server = new Socket(InetAddress.getLoopbackAddress(), first == HANDSHAKE ? tls : plain);
    client.setTcpNoDelay(true);
    server.setTcpNoDelay(true);
    server.getOutputStream().write(first);
    background(() -> copy(server, client));
    copy(client, server);
  }

  private static void copy(Socket from, Socket to) throws Exception {
    try (from; to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      byte[] bytes = new byte[1 << 16];
      for (int count = in.read(bytes); count > 0; count = in.read(bytes)) {
        out.write(bytes, 0, count);
      }
    }
  }

  private interface Work {
    void run() throws Exception;
  }

  private static void background(Work work) {
    Thread thread =
        new Thread(
            () -> {
              try {
                work.run();
              } catch (Exception ended) {
                // One side has closed the connection.
              }
            });
    thread.setDaemon(true);
    thread.start();
  }

  private Door() {}
}
