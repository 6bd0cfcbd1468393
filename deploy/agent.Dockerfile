# An image of `snapcli agent` with PostgreSQL's programs. It does not run as root.
# Build it from the repository's root:
#
#   docker build -f deploy/agent.Dockerfile -t snapcli-agent .
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
# .git is included because the program's version comes from it.
COPY . .
RUN CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o /out/snapcli ./cmd/snapcli \
 && mkdir -p /out/data

FROM postgres:18-bookworm
COPY --from=build /out/snapcli /usr/local/bin/snapcli
# Group 0 may write to /data, because OpenShift runs containers as any user in group 0.
COPY --from=build --chown=65532:0 --chmod=770 /out/data /data
USER 65532:65532
ENV SNAPCLI_CONFIG_DIR=/config SNAPCLI_DATA_DIR=/data
VOLUME /data
ENTRYPOINT ["/usr/local/bin/snapcli"]
CMD ["agent", "--utc"]
