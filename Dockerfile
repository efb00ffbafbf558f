# joinbench in a container. `docker build -t joinbench .`; compose.yaml has it beside Kafka, Prometheus and Grafana.
# scripts/image-check.sh takes the same steps in a chroot, where images cannot be pulled.
FROM golang:1.26.8-trixie AS build
WORKDIR /src
# RocksDB takes minutes and changes seldom: it is a layer of its own.
COPY scripts/rocksdb.sh scripts/tools.sh scripts/
RUN scripts/rocksdb.sh
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG COMMIT=
RUN make COMMIT="$COMMIT" DIRTY=false

FROM debian:trixie-slim
RUN apt-get update && \
    apt-get install -y --no-install-recommends ca-certificates liblz4-1 libstdc++6 libzstd1 && \
    rm -rf /var/lib/apt/lists/*
RUN useradd --uid 10001 --create-home --home-dir /var/lib/joinbench --shell /usr/sbin/nologin joinbench
COPY --from=build /src/bin/joinbench /usr/local/bin/joinbench
USER joinbench
WORKDIR /var/lib/joinbench
ENTRYPOINT ["joinbench"]
CMD ["--help"]
