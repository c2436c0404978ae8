# The broker, from the lock. The first stage has what builds wheels, the second only what runs.

FROM python:3.11-slim AS build
WORKDIR /src
RUN python -m venv /opt/tureen
ENV PATH=/opt/tureen/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
COPY requirements/build.txt requirements/server.txt requirements/
RUN pip install --require-hashes -r requirements/build.txt \
    && pip install --no-build-isolation --require-hashes -r requirements/server.txt
COPY pyproject.toml README.md LICENSE ./
COPY tureen tureen
COPY broker broker
COPY topics topics
COPY engine engine
COPY storage storage
COPY spark_jobs spark_jobs
RUN pip install --no-deps --no-build-isolation .

FROM python:3.11-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/tureen --create-home tureen \
    && chmod 700 /var/lib/tureen
COPY --from=build /opt/tureen /opt/tureen
ENV PATH=/opt/tureen/bin:$PATH PYTHONUNBUFFERED=1 TUREEN_DATA_DIR=/var/lib/tureen
USER tureen
VOLUME /var/lib/tureen
# A signal reaches the broker itself, which then flushes and leaves its groups before it ends.
STOPSIGNAL SIGTERM
ENTRYPOINT ["tureen"]
CMD ["serve"]
