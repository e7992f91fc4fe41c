# syntax=docker/dockerfile:1
# The image brings its own Node, so the build leaves the development runtime (tools/runtime) out of it.

FROM node:26-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc tsconfig.json tsconfig.build.json ./
COPY tools/ tools/
COPY src/ src/
RUN npm ci --no-fund --no-audit
RUN npm prune --omit=dev --ignore-scripts

FROM node:26-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build /app/package.json ./
COPY --from=build /app/node_modules/ node_modules/
COPY --from=build /app/dist/ dist/
COPY config/ config/
COPY LICENSE ./
# The image's own unprivileged user, by number: Kubernetes' runAsNonRoot cannot judge a name.
USER 1000:1000
# Both ports are loopback ones: the containers of a pod share it, nothing outside reaches it.
EXPOSE 18080 19464
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["node", "dist/main.js", "health", "live"]
# Exec form: signals reach the sidecar itself.
ENTRYPOINT ["node", "dist/main.js"]
