# The worker as a container: one static binary, no shell, not root. `docker build -t charge-once .`
FROM rust:1-alpine AS build
RUN apk add --no-cache musl-dev gcc
WORKDIR /src
COPY . .
# The command line without local mode. `--build-arg FEATURES=cli,s3,otel` adds orders in S3 and spans.
ARG FEATURES=cli
# musl makes the binary static; the toolchain is the image's own.
RUN rm -f rust-toolchain.toml \
    && cargo build --locked --release --no-default-features --features "$FEATURES" --bin charge-once \
    && install -D target/release/charge-once /out/charge-once

FROM scratch
COPY --from=build /out/charge-once /charge-once
# Not root; the number needs no /etc/passwd. Certificates are compiled in.
USER 65532:65532
# SIGTERM finishes what was begun: give it longer than one charge (docs/worker.md).
STOPSIGNAL SIGTERM
ENTRYPOINT ["/charge-once"]
CMD ["worker"]
