ISTREAM (SELECT dest FROM flights [NOW]) WITH (max_fn = '0.1') EMIT CHANGES WITH (format = 'diff')
