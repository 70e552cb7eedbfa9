import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs the main methods of named classes in one JVM: a line with a JSON array (class, then arguments) in,
 * a line with a JSON object (exit code, standard output, standard error) out.
 */
public final class Runner {
    /** Thrown in place of ending the JVM. */
    private static final class Exited extends Error {
        private static final long serialVersionUID = 1L;

        Exited(int code) {
            super("exit " + code, null, false, false);
        }
    }

    /**
     * Installed once as System.out, before any other class can keep a reference to the original (Scala's console
     * does); what it writes to changes from command to command.
     */
    private static final class Captured extends OutputStream {
        private final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        @Override
        public synchronized void write(int b) {
            bytes.write(b);
        }

        @Override
        public synchronized void write(byte[] data, int offset, int length) {
            bytes.write(data, offset, length);
        }

        synchronized String take() {
            String text = bytes.toString(StandardCharsets.UTF_8);
            bytes.reset();
            return text;
        }
    }

    private static final Captured OUT = new Captured();
    private static final Captured ERR = new Captured();
    private static volatile Integer exitCode;

    public static void main(String[] arguments) throws Exception {
        PrintStream replies = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(new PrintStream(OUT, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(ERR, true, StandardCharsets.UTF_8));
        Exit.setExitProcedure((code, message) -> exited(code));
        Exit.setHaltProcedure((code, message) -> exited(code));
        ObjectMapper json = new ObjectMapper();
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            int code = run(json.readValue(line, String[].class));
            replies.println(json.writeValueAsString(Map.of("code", code, "out", OUT.take(), "err", ERR.take())));
            replies.flush();
        }
    }

    /** The first exit counts: a tool that catches everything would otherwise turn "exit 0" into "exit 1". */
    private static void exited(int code) {
        if (exitCode == null) {
            exitCode = code;
        }
        throw new Exited(code);
    }

    private static int run(String[] command) {
        exitCode = null;
        try {
            String[] arguments = Arrays.copyOfRange(command, 1, command.length);
            Class.forName(command[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
        } catch (InvocationTargetException e) {
            if (!(e.getCause() instanceof Exited)) {
                e.getCause().printStackTrace();
                return exitCode == null ? 1 : exitCode;
            }
        } catch (ReflectiveOperationException e) {
            e.printStackTrace();
            return 1;
        }
        return exitCode == null ? 0 : exitCode;
    }
}
