SELECT carrier FROM carriers WHERE n > 2 ORDER BY most DESC
