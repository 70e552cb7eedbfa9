import org.apache.kafka.clients.admin.Admin;

/**
 * How long metadata cannot change when the active controller is killed: {@code BOOTSTRAP TOPIC NEW NODES} waits until
 * TOPIC is whole, kills the active controller and creates the topic NEW, and prints which node it was and the
 * milliseconds from the signal until the topic was there. With {@code -} for NODES nobody is killed.
 */
public final class ControllerLoss {
    private ControllerLoss() {}

    public static void main(String[] arguments) throws Exception {
        try (Admin admin = ClusterRoles.admin(arguments[0])) {
            int node = 0;
            long begin = System.nanoTime();
            if (!arguments[3].equals("-")) {
                ClusterRoles.settle(admin, arguments[1]);
                node = ClusterRoles.controller(admin);
                ProcessHandle process = ClusterRoles.processes(arguments[3]).get(node);
                begin = System.nanoTime();
                process.destroyForcibly();
            }
            ClusterRoles.create(admin, arguments[2]);
            System.out.printf("%d %.3f%n", node, (System.nanoTime() - begin) / 1e6);
        }
    }
}
