import com.espertech.esper.common.client.EPCompiled;
import com.espertech.esper.common.client.EventBean;
import com.espertech.esper.common.client.configuration.Configuration;
import com.espertech.esper.compiler.client.CompilerArguments;
import com.espertech.esper.compiler.client.EPCompiler;
import com.espertech.esper.compiler.client.EPCompilerProvider;
import com.espertech.esper.runtime.client.DeploymentOptions;
import com.espertech.esper.runtime.client.EPEventService;
import com.espertech.esper.runtime.client.EPRuntime;
import com.espertech.esper.runtime.client.EPRuntimeProvider;
import com.espertech.esper.runtime.client.EPStatement;
import com.espertech.esper.runtime.client.UpdateListener;

import java.io.BufferedOutputStream;
import java.io.DataOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Sends rows through Esper with standing queries, and counts what their listeners get.
 *
 * <p>Arguments: directory, seconds for a pass, passes. In the directory lie {@code rows}, little-endian int32
 * of all values of a, then b, c, d; and {@code queries}, a line a query: EPL with parameters, and their values
 * behind tabs. A text is compiled once, and deployed for each query that has it. Written there: {@code counts},
 * big-endian int64 of matches a query in the last pass. A warm-up sends rows for {@code seconds} and tells how
 * many rows a pass can have; each pass sends that many, from the first row on. Prints lines {@code key value}:
 * deploy_s, heap_bytes, rows, and pass_s for each pass.
 */
public final class Harness {
    /** Rows between looks at the clock while warming up. */
    private static final int LOOK = 64;

    /** A row, as Esper reads a bean. */
    public static final class Row {
        private final int a;
        private final int b;
        private final int c;
        private final int d;

        Row(int a, int b, int c, int d) {
            this.a = a;
            this.b = b;
            this.c = c;
            this.d = d;
        }

        public int getA() {
            return a;
        }

        public int getB() {
            return b;
        }

        public int getC() {
            return c;
        }

        public int getD() {
            return d;
        }
    }

    private static final class Counter implements UpdateListener {
        private long matches;

        @Override
        public void update(EventBean[] in, EventBean[] out, EPStatement statement, EPRuntime runtime) {
            matches += in.length;
        }
    }

    private Harness() {
    }

    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]);
        double seconds = Double.parseDouble(arguments[1]);
        int passes = Integer.parseInt(arguments[2]);
        Row[] rows = rows(Files.readAllBytes(directory.resolve("rows")));
        List<String> queries = Files.readAllLines(directory.resolve("queries"));

        Configuration configuration = new Configuration();
        configuration.getCommon().addEventType("psoup", Row.class);
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        EPRuntime runtime = EPRuntimeProvider.getRuntime("harness", configuration);
        long heapBefore = heapBytes();
        long began = System.nanoTime();
        Counter[] counters = deploy(runtime, configuration, queries);
        print("deploy_s", (System.nanoTime() - began) / 1e9);
        print("heap_bytes", Math.max(0, heapBytes() - heapBefore));

        EPEventService service = runtime.getEventService();
        int n = warmUp(service, rows, seconds);
        print("rows", n);
        for (int pass = 0; pass < passes; pass++) {
            for (Counter counter : counters) {
                counter.matches = 0;
            }
            began = System.nanoTime();
            for (int i = 0; i < n; i++) {
                service.sendEventBean(rows[i], "psoup");
            }
            print("pass_s", (System.nanoTime() - began) / 1e9);
        }
        try (DataOutputStream counts = new DataOutputStream(
                new BufferedOutputStream(Files.newOutputStream(directory.resolve("counts"))))) {
            for (Counter counter : counters) {
                counts.writeLong(counter.matches);
            }
        }
        System.exit(0);
    }

    private static Row[] rows(byte[] bytes) {
        ByteBuffer values = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        int n = bytes.length / 16;
        Row[] rows = new Row[n];
        for (int i = 0; i < n; i++) {
            rows[i] = new Row(values.getInt(4 * i), values.getInt(4 * (n + i)), values.getInt(4 * (2 * n + i)),
                    values.getInt(4 * (3 * n + i)));
        }
        return rows;
    }

    private static Counter[] deploy(EPRuntime runtime, Configuration configuration, List<String> queries)
            throws Exception {
        EPCompiler compiler = EPCompilerProvider.getCompiler();
        Map<String, EPCompiled> compiled = new HashMap<>();
        Counter[] counters = new Counter[queries.size()];
        for (int i = 0; i < counters.length; i++) {
            String[] words = queries.get(i).split("\t");
            EPCompiled text = compiled.get(words[0]);
            if (text == null) {
                text = compiler.compile(words[0], new CompilerArguments(configuration));
                compiled.put(words[0], text);
            }
            DeploymentOptions options = new DeploymentOptions();
            options.setStatementSubstitutionParameter(parameters -> {
                for (int place = 1; place < words.length; place++) {
                    parameters.setObject(place, Integer.valueOf(words[place]));
                }
            });
            EPStatement statement = runtime.getDeploymentService().deploy(text, options).getStatements()[0];
            counters[i] = new Counter();
            statement.addListener(counters[i]);
        }
        return counters;
    }

    /** Sends rows, round and round, for some seconds; how many a second of the later half allows a pass. */
    private static int warmUp(EPEventService service, Row[] rows, double seconds) {
        long began = System.nanoTime();
        long half = began + (long) (seconds * 0.5e9);
        long end = began + (long) (seconds * 1e9);
        long sent = 0;
        long late = 0;
        long lateFrom = began;
        for (long now = began; now < end; now = System.nanoTime()) {
            if (now < half) {
                late = 0;
                lateFrom = now;
            }
            for (int i = 0; i < LOOK; i++, late++) {
                service.sendEventBean(rows[(int) (sent++ % rows.length)], "psoup");
            }
        }
        double rate = late / ((System.nanoTime() - lateFrom) / 1e9);
        return (int) Math.max(1, Math.min(rows.length, rate * seconds));
    }

    private static long heapBytes() throws InterruptedException {
        for (int i = 0; i < 3; i++) {
            System.gc();
            Thread.sleep(50);
        }
        return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
    }

    private static void print(String key, double value) {
        System.out.println(key + " " + value);
    }
}
