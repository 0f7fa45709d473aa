# moviola for a folder of films: the core, without torch. The library lies in /library, films in /films.
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE constraints.txt ./
COPY src src
RUN python -m venv /opt/moviola \
 && python -m pip wheel --no-cache-dir --no-deps --wheel-dir /wheel . \
 && /opt/moviola/bin/pip install --no-cache-dir --constraint constraints.txt /wheel/*.whl

FROM python:3.11-slim
COPY --from=build /opt/moviola /opt/moviola
RUN useradd --create-home --uid 1000 moviola \
 && mkdir /library /films \
 && chown moviola /library
ENV PATH=/opt/moviola/bin:$PATH MOVIOLA_LIBRARY=/library/moviola MOVIOLA_COMPILED=/library/compiled \
    HF_HUB_CACHE=/library/hub
USER moviola
WORKDIR /library
VOLUME ["/library"]
EXPOSE 8765
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8765/healthz', timeout=4)"]
ENTRYPOINT ["moviola"]
CMD ["--help"]
