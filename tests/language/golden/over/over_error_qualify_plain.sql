SELECT carrier FROM flights QUALIFY delay > 3
