SELECT carrier FROM flights GROUP BY carrier
