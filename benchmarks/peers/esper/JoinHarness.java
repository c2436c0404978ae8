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
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/**
 * Sends rows of several streams, in turn, through Esper with standing joins, and counts what their listeners get.
 *
 * <p>Arguments: directory, streams, rows of a window, seconds for a pass, passes, queries to look at. In the
 * directory lie {@code rows}, little-endian int32 of all values of k, then v, a row of each stream in turn; and
 * {@code queries}, a line a query: EPL with parameters over the windows W0, W1, ..., and their values behind
 * tabs. The windows are named ones that all queries share, over the last rows of each stream; they are full before
 * the queries are deployed. A warm-up sends rows for {@code seconds} and tells how many a pass has; passes go on
 * where it ended, round and round. Written: {@code counts}, big-endian int64 of matches a query in the last pass;
 * {@code answers}, how many combinations each of the first queries holds at the end. Prints lines
 * {@code key value}: deploy_s, begin (rows sent before the last pass), rows, and pass_s for each pass.
 */
public final class JoinHarness {
    /** A row, as Esper reads a bean. */
    public static final class Row {
        private final int k;
        private final int v;

        Row(int k, int v) {
            this.k = k;
            this.v = v;
        }

        public int getK() {
            return k;
        }

        public int getV() {
            return v;
        }
    }

    private static final class Counter implements UpdateListener {
        private long matches;

        @Override
        public void update(EventBean[] in, EventBean[] out, EPStatement statement, EPRuntime runtime) {
            if (in != null) {
                matches += in.length;
            }
        }
    }

    private final EPEventService service;
    private final String[] names;
    private final Row[] rows;
    private long sent;

    private JoinHarness(EPEventService service, String[] names, Row[] rows) {
        this.service = service;
        this.names = names;
        this.rows = rows;
    }

    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]);
        int streams = Integer.parseInt(arguments[1]);
        int window = Integer.parseInt(arguments[2]);
        double seconds = Double.parseDouble(arguments[3]);
        int passes = Integer.parseInt(arguments[4]);
        int looked = Integer.parseInt(arguments[5]);
        List<String> queries = Files.readAllLines(directory.resolve("queries"));

        Configuration configuration = new Configuration();
        configuration.getRuntime().getThreading().setInternalTimerEnabled(false);
        String[] names = new String[streams];
        StringBuilder windows = new StringBuilder();
        for (int i = 0; i < streams; i++) {
            names[i] = "s" + i;
            configuration.getCommon().addEventType(names[i], Row.class);
            windows.append("@public create window W" + i + "#length(" + window + ") as s" + i + ";\n");
            windows.append("insert into W" + i + " select * from s" + i + ";\n");
        }
        EPRuntime runtime = EPRuntimeProvider.getRuntime("harness", configuration);
        EPCompiler compiler = EPCompilerProvider.getCompiler();
        EPCompiled shared = compiler.compile(windows.toString(), new CompilerArguments(configuration));
        runtime.getDeploymentService().deploy(shared);

        Row[] rows = rows(Files.readAllBytes(directory.resolve("rows")));
        JoinHarness harness = new JoinHarness(runtime.getEventService(), names, rows);
        harness.send(streams * (long) window);

        long began = System.nanoTime();
        CompilerArguments with = new CompilerArguments(configuration);
        with.getPath().add(shared);
        Map<String, EPCompiled> compiled = new HashMap<>();
        Counter[] counters = new Counter[queries.size()];
        EPStatement[] statements = new EPStatement[queries.size()];
        for (int i = 0; i < counters.length; i++) {
            String[] words = queries.get(i).split("\t");
            EPCompiled text = compiled.get(words[0]);
            if (text == null) {
                text = compiler.compile(words[0], with);
                compiled.put(words[0], text);
            }
            DeploymentOptions options = new DeploymentOptions();
            options.setStatementSubstitutionParameter(parameters -> {
                for (int place = 1; place < words.length; place++) {
                    parameters.setObject(place, Integer.valueOf(words[place]));
                }
            });
            statements[i] = runtime.getDeploymentService().deploy(text, options).getStatements()[0];
            counters[i] = new Counter();
            statements[i].addListener(counters[i]);
        }
        print("deploy_s", (System.nanoTime() - began) / 1e9);

        long n = harness.warmUp(seconds);
        print("rows", n);
        long begin = 0;
        for (int pass = 0; pass < passes; pass++) {
            for (Counter counter : counters) {
                counter.matches = 0;
            }
            begin = harness.sent;
            began = System.nanoTime();
            harness.send(n);
            print("pass_s", (System.nanoTime() - began) / 1e9);
        }
        print("begin", begin);
        try (DataOutputStream counts = output(directory.resolve("counts"))) {
            for (Counter counter : counters) {
                counts.writeLong(counter.matches);
            }
        }
        try (DataOutputStream answers = output(directory.resolve("answers"))) {
            for (int i = 0; i < Math.min(looked, statements.length); i++) {
                long size = 0;
                for (Iterator<EventBean> each = statements[i].iterator(); each.hasNext(); each.next()) {
                    size++;
                }
                answers.writeLong(size);
            }
        }
        System.exit(0);
    }

    private static DataOutputStream output(Path path) throws Exception {
        return new DataOutputStream(new BufferedOutputStream(Files.newOutputStream(path)));
    }

    private static Row[] rows(byte[] bytes) {
        ByteBuffer values = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        int n = bytes.length / 8;
        Row[] rows = new Row[n];
        for (int i = 0; i < n; i++) {
            rows[i] = new Row(values.getInt(4 * i), values.getInt(4 * (n + i)));
        }
        return rows;
    }

    /** Sends the next rows. */
    private void send(long count) {
        for (long i = 0; i < count; i++, sent++) {
            service.sendEventBean(rows[(int) (sent % rows.length)], names[(int) (sent % names.length)]);
        }
    }

    /** Sends rows for some seconds; how many a second of the later half allows a pass. */
    private long warmUp(double seconds) {
        long began = System.nanoTime();
        long half = began + (long) (seconds * 0.5e9);
        long end = began + (long) (seconds * 1e9);
        long late = 0;
        long lateFrom = began;
        for (long now = began; now < end || late == 0; now = System.nanoTime()) {
            if (now < half) {
                late = 0;
                lateFrom = System.nanoTime();
            }
            send(names.length);
            late += names.length;
        }
        double rate = late / ((System.nanoTime() - lateFrom) / 1e9);
        return Math.max(1, (long) (rate * seconds));
    }

    private static void print(String key, double value) {
        System.out.println(key + " " + value);
    }
}
