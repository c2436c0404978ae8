"""``python -m spark_jobs.archive``, and what spark-submit is given."""

from spark_jobs.archive.command import archive

if __name__ == "__main__":
    archive(prog_name="python -m spark_jobs.archive")
