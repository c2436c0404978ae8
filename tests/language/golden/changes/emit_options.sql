SELECT dest FROM flights ORDER BY dest LIMIT 3
EMIT CHANGES INTO Alerts WITH (FORMAT = 'Debezium', encoding = 'avro', snapshot = false)
