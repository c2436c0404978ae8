"""Esper 9: a harness in Java, compiled and run here, its jars from Maven Central."""
