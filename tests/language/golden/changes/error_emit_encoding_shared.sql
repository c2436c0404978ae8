SELECT dest FROM flights EMIT CHANGES WITH (format = 'diff', encoding = 'Avro')
