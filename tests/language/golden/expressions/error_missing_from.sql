SELECT carrier
