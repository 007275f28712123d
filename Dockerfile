# Sallyport as an image: built in one stage, run by an unprivileged user in the next. docs/container.md says how.
# The base is any Debian bookworm; it needs no Node.js, since the bootstrap brings the pinned one.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
# A network with a CA of its own mounts the certificates and names them here; neither reaches the image.
ARG NODE_EXTRA_CA_CERTS
RUN apt-get update \
 && apt-get install -y --no-install-recommends nodejs npm python3 make g++ ca-certificates
WORKDIR /opt/sallyport
COPY package.json package-lock.json ./
COPY bin bin
# The same set-up as on a fresh clone; then everything that only builds or tests goes.
RUN node bin/bootstrap.mjs \
 && PATH=/opt/sallyport/.runtime:$PATH npm prune --omit=dev --ignore-scripts --no-audit --no-fund \
 && rm -rf node_modules/re2/vendor node_modules/re2/build/Release/obj.target \
 && cp -L .runtime/node /usr/local/bin/node
COPY src src
COPY config/container.yaml config/
# The first start compiles; keeping what it compiled makes the start of every container a quick one.
RUN rm -rf .runtime bin \
 && /usr/local/bin/node src/start.mjs --version \
 && /usr/local/bin/node src/start.mjs check config/container.yaml \
 && rm -rf config package-lock.json

FROM ${BASE}
RUN apt-get update \
 && apt-get install -y --no-install-recommends ca-certificates \
 && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
COPY --from=build /usr/local/bin/node /usr/local/bin/node
COPY --from=build /opt/sallyport /opt/sallyport
COPY LICENSE /opt/sallyport/
# The config, and beside it certs/, where the CA is made on first start: one volume holds both.
COPY --chown=65532:65532 config/container.yaml /etc/sallyport/sallyport.yaml
RUN mkdir -p /etc/sallyport/certs && chown 65532:65532 /etc/sallyport /etc/sallyport/certs
USER 65532:65532
WORKDIR /etc/sallyport
EXPOSE 8080 9464
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s \
  CMD ["node", "-e", "fetch('http://127.0.0.1:9464/healthz').then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["node", "--max-semi-space-size=32", "/opt/sallyport/src/start.mjs"]
CMD ["serve", "--config", "/etc/sallyport/sallyport.yaml"]
