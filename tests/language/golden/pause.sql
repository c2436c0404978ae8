PAUSE 'abc'
