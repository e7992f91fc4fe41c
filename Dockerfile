# A small image in three layers: Node.js with the libraries that it is linked to, the runtime packages, the sidecar. No shell, no
# package manager, no npm. What each step takes along, tools/image/assemble-root.ts says.

# Can be given with a digest: docs/install.md shows how to pin and to verify it.
ARG NODE_IMAGE=node:26.10.0-bookworm-slim

FROM ${NODE_IMAGE} AS packages
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
COPY tools/runtime/ tools/runtime/
# Optional packages are those that bring development its Node.js; this image has one. The two secrets are for
# a registry or an authority of your own; nothing of them stays.
RUN --mount=type=cache,target=/root/.npm --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=secret,id=ca \
    npm ci --omit=dev --omit=optional --ignore-scripts --no-fund --no-audit

# The bundler's native part is an optional package, too.
FROM packages AS build
RUN --mount=type=cache,target=/root/.npm --mount=type=secret,id=npmrc,target=/root/.npmrc --mount=type=secret,id=ca \
    npm ci --ignore-scripts --no-fund --no-audit
COPY LICENSE ./
COPY tools/ tools/
COPY src/ src/
RUN npm run build

FROM ${NODE_IMAGE} AS image
ARG SOURCE_DATE_EPOCH=0
WORKDIR /app
COPY package.json package-lock.json .npmrc LICENSE ./
COPY tools/image/ tools/image/
COPY --from=packages /app/node_modules/ node_modules/
COPY --from=build /app/dist/ dist/
RUN node tools/image/assemble-root.ts /image

FROM scratch
COPY --from=image /image/system/ /
COPY --from=image /image/packages/ /
COPY --from=image /image/application/ /
ENV NODE_ENV=production
# Memory, measured (docs/adr/0019 and 0021): a young generation that fits the work, an old one that leaves room for the buffers of bodies, one
# malloc arena, and freed memory given back.
ENV NODE_OPTIONS="--max-semi-space-size=4 --max-old-space-size-percentage=40"
ENV MALLOC_ARENA_MAX=1 MALLOC_TRIM_THRESHOLD_=131072
WORKDIR /app
# By number: Kubernetes' runAsNonRoot cannot judge a name.
USER 1000:1000
# Both ports are loopback ones unless told otherwise: the containers of a pod share it, nothing outside reaches it.
EXPOSE 18080 19464
HEALTHCHECK --interval=30s --timeout=3s --start-period=10s CMD ["/usr/local/bin/node", "dist/main.js", "health", "live"]
# Exec form: signals reach the sidecar itself. Between two collections the heap may grow two and a half times, and not fourfold, as a small one
# otherwise may. What the start left is collected once.
ENTRYPOINT ["/usr/local/bin/node", "--heap-growing-percent=150", "--expose-gc", "dist/main.js"]

ARG NODE_IMAGE
ARG VERSION=0.1.0
ARG REVISION=""
LABEL org.opencontainers.image.title="bearer-sidecar" \
      org.opencontainers.image.description="OAuth 2.0 bearer tokens, throttling and retries for applications that know none of them" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="${NODE_IMAGE}"
