SELECT carrier FROM flights WHERE DECODE(carrier, 'hex') = '\x0'
