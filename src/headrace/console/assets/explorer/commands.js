// The command that does the same as an operation, where there is one: by method and the end of the path.

const TABLE = [
  ["get /topics", "kafka-topics --list"],
  ["get /topics/{topic_name}", "kafka-topics --describe --topic {topic_name}"],
  ["get /topics/{topic}", "kafka-topics --describe --topic {topic}"],
  ["post /topics/{topic}", "kafka-console-producer --topic {topic}"],
  ["post /topics/{topic_name}", "kafka-console-producer --topic {topic_name}"],
  ["get /v3/clusters/{cluster_id}/acls", "kafka-acls --list"],
  ["get /v3/clusters/{cluster_id}/brokers", "kafka-broker-api-versions"],
  ["get /v3/clusters/{cluster_id}/topics/{topic_name}/partitions", "kafka-topics --describe --topic {topic_name}"],
  ["get /v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}/consumers", "kafka-consumer-groups --describe --members --group {consumer_group_id}"],
  ["delete /v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}", "kafka-consumer-groups --delete --group {consumer_group_id}"],
  ["get /v3/clusters/{cluster_id}/topics/-/partitions/-/reassignment", "kafka-reassign-partitions --list"],
  ["get /brokers", "kafka-broker-api-versions"],
  ["get /v3/clusters", "kafka-cluster cluster-id"],
  ["get /v3/clusters/{cluster_id}/topics", "kafka-topics --list"],
  ["post /v3/clusters/{cluster_id}/topics", "kafka-topics --create --topic NAME"],
  ["get /v3/clusters/{cluster_id}/topics/{topic_name}", "kafka-topics --describe --topic {topic_name}"],
  ["delete /v3/clusters/{cluster_id}/topics/{topic_name}", "kafka-topics --delete --topic {topic_name}"],
  ["get /v3/clusters/{cluster_id}/topics/{topic_name}/configs", "kafka-configs --describe --topic {topic_name} --all"],
  ["get /v3/clusters/{cluster_id}/consumer-groups", "kafka-consumer-groups --list"],
  ["get /v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}", "kafka-consumer-groups --describe --group {consumer_group_id}"],
  ["get /v3/clusters/{cluster_id}/consumer-groups/{consumer_group_id}/lags", "kafka-consumer-groups --describe --group {consumer_group_id}"],
  ["get /v3/clusters/{cluster_id}/brokers/{broker_id}/configs", "kafka-configs --describe --entity-type brokers --entity-name {broker_id} --all"],
  ["get /v3/clusters/{cluster_id}/topics/{topic_name}/partitions/{partition_id}/offset", "kafka-get-offsets --topic {topic_name} --partitions {partition_id}"],
  ["get /topics/{topic}/partitions", "kafka-topics --describe --topic {topic}"],
  ["get /topics/{topic}/partitions/{partition}", "kafka-topics --describe --topic {topic}"],
  ["get /topics/{topic}/partitions/{partition}/offsets", "kafka-get-offsets --topic {topic} --partitions {partition}"],
  ["get /topics/{topic}/partitions/{partition}/records", "kafka-console-consumer --topic {topic} --partition {partition} --offset earliest --exit-at-end"],
  ["get /v3/clusters/{cluster_id}/metadata-quorum", "kafka-metadata-quorum describe --replication"],
  ["get /v3/clusters/{cluster_id}/transactions", "kafka-transactions list"],
  ["get /v3/clusters/{cluster_id}/transactions/{transactional_id}", "kafka-transactions describe --transactional-id {transactional_id}"],
  ["post /v3/clusters/{cluster_id}/transactions/{transactional_id}/abort", "kafka-transactions forceTerminateTransaction --transactionalId {transactional_id}"],
  ["post /v3/clusters/{cluster_id}/topics/{topic_name}/records", "kafka-console-producer --topic {topic_name}"],
  ["get /stream/{topics}", "kafka-console-consumer --topic {topics}"],
  ["get /ready", "headrace health"],
];

const COMMANDS = new Map(TABLE);

export function commandFor({ method, path }, values, bootstrap) {
  const pattern = COMMANDS.get(`${method} ${path}`);
  if (!pattern) return "";
  const filled = pattern.replace(/{(\w+)}/g, (braces, name) => quoted(values[name] || braces));
  return `${filled} --bootstrap-server ${bootstrap}`;
}

const quoted = (text) => (/^[\w@%+=:,./{}-]+$/.test(text) ? text : `'${text.replaceAll("'", `'"'"'`)}'`);
