SELECT carrier FROM flights WHERE ts::TIME > '9 o clock'
