SELECT carrier FROM flights WHERE delay = ALL (SELECT wind FROM weather) OR delay > 30
