import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.wire.message.MongoMessage;
import io.netty.channel.Channel;
import java.io.OutputStream;
import java.net.InetSocketAddress;

/**
 * A server that speaks MongoDB's wire protocol and keeps everything in memory, for tests on machines without mongod. It takes
 * one command at a time on a collection, so it decides races. It prints its address, and ends with its standard input, so
 * that it never outlives the test that started it.
 */
public class TestServer {
  /** Of MongoDB 7.0: the library says that it is a 5.0, which is below what the store takes. */
  private static final int WIRE_VERSION = 21;

  /** The library knows the greeting by its old name only. */
  private static class Backend extends MemoryBackend {
    @Override
    public Document handleMessage(MongoMessage message) {
      Document command = message.getDocument();
      return command.containsKey("hello")
          ? hello(message.getChannel(), (String) command.get("$db"))
          : super.handleMessage(message);
    }

    @Override
    public Document handleCommand(Channel channel, String database, String command, Document query) {
      return command.equalsIgnoreCase("hello") || command.equalsIgnoreCase("ismaster")
          ? hello(channel, database)
          : super.handleCommand(channel, database, command, query);
    }

    private Document hello(Channel channel, String database) {
      Document answer = super.handleCommand(channel, database, "ismaster", new Document("ismaster", 1));
      return answer.append("isWritablePrimary", true).append("maxWireVersion", WIRE_VERSION);
    }
  }

  public static void main(String[] arguments) throws Exception {
    MongoServer server = new MongoServer(new Backend());
    server.bind(new InetSocketAddress("127.0.0.1", 0));
    System.out.println("mongodb://127.0.0.1:" + server.getLocalAddress().getPort());
    System.in.transferTo(OutputStream.nullOutputStream());
    server.shutdownNow();
    System.exit(0);
  }
}
