SELECT 1 FROM flights JOIN flights ON TRUE
