SELECT carrier FROM flights WHERE dest <> ALL (SELECT dest FROM weather)
