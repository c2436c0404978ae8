SELECT dest FROM flights EMIT CHANGES WITH (kafka_topic = 'late')
