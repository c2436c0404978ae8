SELECT carrier FROM fares WHERE since > NOW() - INTERVAL '1' DAY
