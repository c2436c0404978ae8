PAUSE abc
