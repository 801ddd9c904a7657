import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.Vector;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.DBException;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * YCSB's reads and updates over JDBC, with as little work as the interface allows: statements are prepared once, and
 * every received value is passed on as the driver's string. (YCSB's own binding is not in Maven Central.)
 */
public class JdbcClient extends DB {
  private static final int FIELDS = 10;

  private Connection connection;
  private String table;
  private PreparedStatement read;
  private final Map<String, PreparedStatement> updates = new HashMap<>();

  @Override
  public void init() throws DBException {
    table = getProperties().getProperty("jdbc.table");
    try {
      connection = DriverManager.getConnection(getProperties().getProperty("jdbc.url"));
      StringBuilder fields = new StringBuilder("field0");
      for (int field = 1; field < FIELDS; field++) {
        fields.append(", field").append(field);
      }
      read = connection.prepareStatement("SELECT " + fields + " FROM " + table + " WHERE ycsb_key = ?");
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  @Override
  public void cleanup() throws DBException {
    try {
      connection.close();
    } catch (SQLException e) {
      throw new DBException(e);
    }
  }

  @Override
  public Status read(String ignored, String key, Set<String> fields, Map<String, ByteIterator> result) {
    try {
      read.setString(1, key);
      try (ResultSet rows = read.executeQuery()) {
        if (!rows.next()) {
          return Status.NOT_FOUND;
        }
        for (int field = 0; field < FIELDS; field++) {
          result.put("field" + field, new StringByteIterator(rows.getString(field + 1)));
        }
        return Status.OK;
      }
    } catch (SQLException e) {
      return Status.ERROR;
    }
  }

  @Override
  public Status update(String ignored, String key, Map<String, ByteIterator> values) {
    try {
      for (Map.Entry<String, ByteIterator> value : values.entrySet()) {
        PreparedStatement update = updates.get(value.getKey());
        if (update == null) {
          update = connection.prepareStatement("UPDATE " + table + " SET " + value.getKey() + " = ? WHERE ycsb_key = ?");
          updates.put(value.getKey(), update);
        }
        update.setString(1, value.getValue().toString());
        update.setString(2, key);
        if (update.executeUpdate() != 1) {
          return Status.NOT_FOUND;
        }
      }
      return Status.OK;
    } catch (SQLException e) {
      return Status.ERROR;
    }
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    return Status.NOT_IMPLEMENTED;
  }

  @Override
  public Status delete(String table, String key) {
    return Status.NOT_IMPLEMENTED;
  }

  @Override
  public Status scan(
      String table, String start, int count, Set<String> fields, Vector<HashMap<String, ByteIterator>> result) {
    return Status.NOT_IMPLEMENTED;
  }
}
