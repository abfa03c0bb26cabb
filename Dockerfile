FROM python:3.12-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/miserly && /opt/miserly/bin/pip install --no-cache-dir -c constraints.txt ".[serve,redis]"
ENV NUMBA_CACHE_DIR=/opt/miserly/numba
RUN /opt/miserly/bin/miserly warmup

FROM python:3.12-slim
COPY --from=build /opt/miserly /opt/miserly
RUN useradd --system --uid 10001 miserly && chown -R miserly /opt/miserly/numba
USER miserly
WORKDIR /srv
ENV PATH=/opt/miserly/bin:$PATH NUMBA_CACHE_DIR=/opt/miserly/numba MISERLY_SERVE_HOST=0.0.0.0
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=2)"]
ENTRYPOINT ["miserly", "serve"]
CMD ["/srv/model.plan"]
