import java.io.File;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.metadata.properties.MetaProperties;
import org.apache.kafka.metadata.properties.MetaPropertiesEnsemble;
import org.apache.kafka.storage.internals.checkpoint.LeaderEpochCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.OffsetCheckpointFile;
import org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile;
import org.apache.kafka.storage.internals.log.EpochEntry;
import org.apache.kafka.storage.internals.log.LogDirFailureChannel;

/**
 * {@code LOG_DIR TOPIC-PARTITION} reads the small files of a log directory with Kafka's own classes and prints what it
 * understood, one fact per line.
 */
public final class ReadCheckpoints {
    public static void main(String[] arguments) throws Exception {
        File logDir = new File(arguments[0]);
        File partition = new File(logDir, arguments[1]);
        LogDirFailureChannel failures = new LogDirFailureChannel(1);
        for (EpochEntry entry :
                new LeaderEpochCheckpointFile(LeaderEpochCheckpointFile.newFile(partition), failures).read()) {
            System.out.println("epoch " + entry.epoch() + " " + entry.startOffset());
        }
        PartitionMetadataFile metadata = new PartitionMetadataFile(PartitionMetadataFile.newFile(partition), failures);
        System.out.println("topic-id " + metadata.read().topicId());
        printOffsets("recovery-point", new File(logDir, "recovery-point-offset-checkpoint"), failures);
        printOffsets("log-start", new File(logDir, "log-start-offset-checkpoint"), failures);
        MetaPropertiesEnsemble ensemble =
                new MetaPropertiesEnsemble.Loader().addLogDirs(List.of(logDir.getPath())).load();
        for (MetaProperties properties : ensemble.logDirProps().values()) {
            System.out.println("meta " + properties.version() + " " + properties.nodeId().getAsInt() + " "
                    + properties.clusterId().get() + " " + properties.directoryId().get());
        }
    }

    private static void printOffsets(String name, File file, LogDirFailureChannel failures) throws Exception {
        Map<String, Long> sorted = new TreeMap<>();
        for (Map.Entry<TopicPartition, Long> entry : new OffsetCheckpointFile(file, failures).read().entrySet()) {
            sorted.put(entry.getKey().toString(), entry.getValue());
        }
        sorted.forEach((key, offset) -> System.out.println(name + " " + key + " " + offset));
    }
}
