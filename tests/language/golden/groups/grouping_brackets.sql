SELECT carrier, delay FROM flights GROUP BY (carrier, delay)
