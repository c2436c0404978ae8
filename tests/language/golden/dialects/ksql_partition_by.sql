SELECT * FROM flights PARTITION BY carrier
