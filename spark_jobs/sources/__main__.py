"""``python -m spark_jobs.sources``, and what spark-submit is given."""

from spark_jobs.sources.command import sources

if __name__ == "__main__":
    sources(prog_name="python -m spark_jobs.sources")
