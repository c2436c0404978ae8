SELECT carrier FROM flights a WHERE dest IN (SELECT dest FROM weather w WHERE w.wind < a.delay AND w.day = a.day)
