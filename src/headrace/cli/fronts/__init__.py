"""Short ways to type Kafka's tools: `headrace topics`, `produce`, `consume` and `groups`."""
