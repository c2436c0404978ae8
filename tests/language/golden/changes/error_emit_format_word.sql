SELECT dest FROM flights EMIT CHANGES WITH (format = upsert)
