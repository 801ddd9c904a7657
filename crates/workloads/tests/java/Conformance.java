import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.io.StringReader;
import java.lang.reflect.Field;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.Vector;
import java.util.concurrent.ThreadLocalRandom;
import java.util.function.Supplier;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.RandomByteIterator;
import site.ycsb.Status;
import site.ycsb.Utils;
import site.ycsb.generator.AcknowledgedCounterGenerator;
import site.ycsb.generator.CounterGenerator;
import site.ycsb.generator.DiscreteGenerator;
import site.ycsb.generator.ExponentialGenerator;
import site.ycsb.generator.HistogramGenerator;
import site.ycsb.generator.HotspotIntegerGenerator;
import site.ycsb.generator.ScrambledZipfianGenerator;
import site.ycsb.generator.SequentialGenerator;
import site.ycsb.generator.SkewedLatestGenerator;
import site.ycsb.generator.UniformLongGenerator;
import site.ycsb.generator.ZipfianGenerator;
import site.ycsb.measurements.Measurements;
import site.ycsb.workloads.CoreWorkload;

/**
 * Drives the real YCSB core with a known seed and prints what it does.
 *
 * Jobs come on standard input, one a line, those of a workload with its properties on the lines after it up to a
 * full stop. The answer to each job ends with a line that holds a full stop.
 */
public final class Conformance {
  private static final PrintStream OUT = new PrintStream(System.out, false, StandardCharsets.UTF_8);

  public static void main(String[] arguments) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = in.readLine(); line != null; line = in.readLine()) {
      String[] job = line.split(" ");
      switch (job[0]) {
        case "workload":
          workload(Long.parseLong(job[1]), Integer.parseInt(job[2]), Integer.parseInt(job[3]), properties(in));
          break;
        case "generator":
          generator(Long.parseLong(job[1]), Integer.parseInt(job[2]), job);
          break;
        case "properties":
          readProperties(job.length > 1 ? job[1] : "");
          break;
        default:
          throw new IllegalArgumentException(line);
      }
      OUT.println(".");
    }
    OUT.flush();
  }

  /** Puts the random source of this thread where a seed of our own says. Its steps depend on the thread's number,
   * which is 1 in Java 17 and another in later versions. */
  private static void seed(long seed) throws ReflectiveOperationException {
    ThreadLocalRandom.current();
    if (Thread.currentThread().getId() != 1) {
      set("tid", 1);
    }
    set("threadLocalRandomSeed", seed);
  }

  private static void set(String name, long value) throws ReflectiveOperationException {
    Field field = Thread.class.getDeclaredField(name);
    field.setAccessible(true);
    field.setLong(Thread.currentThread(), value);
  }

  private static Properties properties(BufferedReader in) throws IOException {
    StringBuilder text = new StringBuilder();
    for (String line = in.readLine(); !line.equals("."); line = in.readLine()) {
      text.append(line).append('\n');
    }
    Properties properties = new Properties();
    properties.load(new StringReader(text.toString()));
    return properties;
  }

  private static void workload(long seed, int loads, int operations, Properties properties) throws Exception {
    properties.setProperty("measurementtype", "histogram");
    Measurements.setProperties(properties);
    CoreWorkload workload = new CoreWorkload();
    workload.init(properties);
    DB database = new Recorder(properties);
    seed(seed);
    for (int i = 0; i < loads; i++) {
      workload.doInsert(database, null);
    }
    seed(seed);
    for (int i = 0; i < operations; i++) {
      workload.doTransaction(database, null);
    }
  }

  /** Prints every request. Reads each value once and as a whole, as the binding for JDBC does. */
  private static final class Recorder extends DB {
    private final int fields;
    private final int prefix;
    private final boolean integrity;

    Recorder(Properties properties) {
      fields = Integer.parseInt(properties.getProperty("fieldcount", "10"));
      prefix = properties.getProperty("fieldnameprefix", "field").length();
      integrity = Boolean.parseBoolean(properties.getProperty("dataintegrity"));
    }

    private String names(Set<String> names) {
      return names == null || names.size() == fields ? "*" : String.join(",", names);
    }

    private Status write(String verb, String key, Map<String, ByteIterator> values) {
      TreeMap<Integer, String> sorted = new TreeMap<>();
      for (Map.Entry<String, ByteIterator> entry : values.entrySet()) {
        String value = entry.getValue().toString();
        int number = Integer.parseInt(entry.getKey().substring(prefix));
        sorted.put(number, " " + entry.getKey() + (integrity ? "=" + value : ""));
      }
      OUT.println(verb + " " + key + String.join("", sorted.values()));
      return Status.OK;
    }

    @Override
    public Status read(String table, String key, Set<String> names, Map<String, ByteIterator> result) {
      OUT.println("READ " + key + " " + names(names));
      return Status.OK;
    }

    @Override
    public Status scan(String table, String key, int count, Set<String> names,
        Vector<HashMap<String, ByteIterator>> result) {
      OUT.println("SCAN " + key + " " + count + " " + names(names));
      return Status.OK;
    }

    @Override
    public Status update(String table, String key, Map<String, ByteIterator> values) {
      return write("UPDATE", key, values);
    }

    @Override
    public Status insert(String table, String key, Map<String, ByteIterator> values) {
      return write("INSERT", key, values);
    }

    @Override
    public Status delete(String table, String key) {
      throw new UnsupportedOperationException();
    }
  }

  private static void generator(long seed, int count, String[] job) throws Exception {
    Supplier<Object> draws = draws(job);
    seed(seed);
    for (int i = 0; i < count; i++) {
      OUT.println(draws.get());
    }
  }

  private static long number(String[] job, int index) {
    return Long.parseLong(job[4 + index]);
  }

  private static double real(String[] job, int index) {
    return Double.parseDouble(job[4 + index]);
  }

  private static Supplier<Object> draws(String[] job) throws Exception {
    switch (job[3]) {
      case "int":
        return () -> ThreadLocalRandom.current().nextInt();
      case "int-below":
        return () -> ThreadLocalRandom.current().nextInt((int) number(job, 0));
      case "long":
        return () -> ThreadLocalRandom.current().nextLong();
      case "double":
        return () -> Double.doubleToRawLongBits(ThreadLocalRandom.current().nextDouble());
      case "hash":
        return () -> Utils.hash(ThreadLocalRandom.current().nextLong());
      case "bytes":
        return () -> {
          StringBuilder hex = new StringBuilder();
          for (byte value : new RandomByteIterator(number(job, 0)).toArray()) {
            hex.append(String.format("%02x", value));
          }
          return hex;
        };
      case "uniform":
        return new UniformLongGenerator(number(job, 0), number(job, 1))::nextValue;
      case "zipfian":
        return new ZipfianGenerator(number(job, 0), number(job, 1))::nextValue;
      case "scrambled":
        return new ScrambledZipfianGenerator(number(job, 0), number(job, 1))::nextValue;
      case "hotspot":
        return new HotspotIntegerGenerator(number(job, 0), number(job, 1), real(job, 2), real(job, 3))::nextValue;
      case "sequential":
        return new SequentialGenerator(number(job, 0), number(job, 1))::nextValue;
      case "exponential": {
        ExponentialGenerator exponential = new ExponentialGenerator(real(job, 0), real(job, 1));
        return () -> exponential.nextValue().intValue();
      }
      case "histogram":
        return new HistogramGenerator(job[4])::nextValue;
      case "discrete": {
        DiscreteGenerator discrete = new DiscreteGenerator();
        for (int i = 4; i < job.length; i++) {
          discrete.addValue(Double.parseDouble(job[i]), String.valueOf(i - 4));
        }
        return discrete::nextValue;
      }
      case "latest": {
        CounterGenerator basis = new CounterGenerator(number(job, 0) + 1);
        SkewedLatestGenerator latest = new SkewedLatestGenerator(basis);
        return () -> {
          basis.nextValue();
          return latest.nextValue();
        };
      }
      case "acknowledged": {
        AcknowledgedCounterGenerator counter = new AcknowledgedCounterGenerator(number(job, 0));
        Vector<Long> open = new Vector<>();
        return () -> {
          while (open.size() < number(job, 1)) {
            open.add(counter.nextValue());
          }
          counter.acknowledge(open.remove(ThreadLocalRandom.current().nextInt(open.size())));
          return counter.lastValue();
        };
      }
      default:
        throw new IllegalArgumentException(job[3]);
    }
  }

  private static void readProperties(String hex) {
    StringBuilder text = new StringBuilder();
    for (int i = 0; i < hex.length(); i += 2) {
      text.append((char) Integer.parseInt(hex.substring(i, i + 2), 16));
    }
    Properties properties = new Properties();
    try {
      properties.load(new StringReader(text.toString()));
    } catch (IllegalArgumentException | IOException malformed) {
      OUT.println("malformed");
      return;
    }
    for (Map.Entry<Object, Object> entry : new TreeMap<>(properties).entrySet()) {
      OUT.println(escape((String) entry.getKey()) + " " + escape((String) entry.getValue()));
    }
  }

  private static String escape(String text) {
    StringBuilder units = new StringBuilder("x");
    for (char unit : text.toCharArray()) {
      units.append(String.format("%04x", (int) unit));
    }
    return units.toString();
  }
}
