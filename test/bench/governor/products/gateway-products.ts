/** Limits of gateways and libraries, by their documentation or source code (pure). */
import { allOf, bucket, clock, counter, firstCall, log, nginx, nodes, refill, slots } from './notation.ts';
import type { Product, Source } from './products.ts';

const AWS: Source = {
  title: 'Throttle requests to your REST APIs for better throughput in API Gateway',
  where: 'https://docs.aws.amazon.com/apigateway/latest/developerguide/api-gateway-request-throttling',
};
const APIM: Source = {
  title: 'rate-limit policy',
  where: 'https://learn.microsoft.com/azure/api-management/rate-limit-policy',
};
const KONG: Source = {
  title: 'Rate Limiting plugin, source code',
  where: 'Kong/kong, kong/plugins/rate-limiting/handler.lua and policies/init.lua',
};
const KONG_LOCAL: Source = {
  title: 'Rate Limiting plugin: strategy local',
  where: 'https://developer.konghq.com/plugins/rate-limiting',
};
const SPRING: Source = {
  title: 'RedisRateLimiter, its script',
  where:
    'spring-cloud/spring-cloud-gateway, spring-cloud-gateway-server/src/main/resources/META-INF/scripts/request_rate_limiter.lua',
};
const BUCKET4J: Source = {
  title: 'Concepts: Refill',
  where: 'bucket4j/bucket4j, asciidoc/src/main/docs/asciidoc/basic/concepts.adoc',
};
const ENVOY_GLOBAL: Source = {
  title: 'Rate limit service, source code',
  where: 'envoyproxy/ratelimit, src/limiter/cache_key.go and base_limiter.go',
};
const ENVOY_LOCAL: Source = {
  title: 'Local rate limit; Token bucket (tokens are added each fill interval)',
  where:
    'envoyproxy/envoy, docs/root/configuration/http/http_filters/local_rate_limit_filter.rst and api/envoy/type/v3/token_bucket.proto',
};
const NGINX: Source = {
  title: 'Module ngx_http_limit_req_module; its source code',
  where:
    'https://nginx.org/en/docs/http/ngx_http_limit_req_module.html; nginx/nginx, src/http/modules/ngx_http_limit_req_module.c',
};
const HAPROXY: Source = {
  title: 'Frequency counters, source code; Four Examples of HAProxy Rate Limiting',
  where:
    'haproxy/haproxy, include/haproxy/freq_ctr.h and src/freq_ctr.c; https://gist.github.com/haproxytechblog/608d580de6144a771c7b46d6ee17f526',
};
const APIGEE = 'https://docs.cloud.google.com/apigee/docs/api-platform/reference/policies/';

const REDIS_BUCKET = 'bucket that is refilled once a second, because the script counts in whole seconds';

export const GATEWAY_PRODUCTS: readonly Product[] = [
  { name: 'AWS API Gateway 20/s b40', limiter: bucket(20, 40), algorithm: 'token bucket', source: AWS },
  { name: 'AWS API Gateway 10/s b5', limiter: bucket(10, 5), algorithm: 'token bucket', source: AWS },
  {
    name: 'Azure APIM 100/60s (10 slots)',
    limiter: slots(100, 60, 10),
    algorithm: 'sliding window, counted in 10 slots',
    source: APIM,
    assumed: 'the slots',
  },
  {
    name: 'Azure APIM 20/10s (10 slots)',
    limiter: slots(20, 10, 10),
    algorithm: 'sliding window, counted in 10 slots',
    source: APIM,
    assumed: 'the slots',
  },
  { name: 'Azure APIM 100/60s log', limiter: log(100, 60), algorithm: 'sliding window', source: APIM },
  {
    name: 'Kong 5/s+200/min+5000/h',
    limiter: allOf(clock(5, 1), clock(200, 60), clock(5000, 3600)),
    algorithm: 'windows by the clock; refused calls do not count',
    source: KONG,
  },
  {
    name: 'Kong 10/s+300/min',
    limiter: allOf(clock(10, 1), clock(300, 60)),
    algorithm: 'windows by the clock; refused calls do not count',
    source: KONG,
  },
  {
    name: 'Kong 100/min',
    limiter: clock(100, 60),
    algorithm: 'windows by the clock; refused calls do not count',
    source: KONG,
  },
  {
    name: 'Spring Cloud Gateway 10/s b20',
    limiter: refill(10, 1, 20),
    algorithm: REDIS_BUCKET,
    source: SPRING,
  },
  {
    name: 'Spring Cloud Gateway 5/s b5',
    limiter: refill(5, 1),
    algorithm: REDIS_BUCKET,
    source: SPRING,
  },
  {
    name: 'Spring Cloud Gateway 1/s b60',
    limiter: refill(1, 1, 60),
    algorithm: REDIS_BUCKET,
    source: SPRING,
  },
  { name: 'bucket4j greedy 10/s b50', limiter: bucket(10, 50), algorithm: 'token bucket', source: BUCKET4J },
  {
    name: 'bucket4j 50 each 5 s',
    limiter: refill(50, 5),
    algorithm: 'bucket that is refilled at intervals',
    source: BUCKET4J,
  },
  {
    name: 'bucket4j 100 each 60 s',
    limiter: refill(100, 60),
    algorithm: 'bucket that is refilled at intervals',
    source: BUCKET4J,
  },
  {
    name: 'bucket4j 10/s b10 + 300/60s',
    limiter: allOf(bucket(10, 10), bucket(5, 300)),
    algorithm: 'two token buckets',
    source: BUCKET4J,
  },
  {
    name: 'Envoy global 10/1s',
    limiter: clock(10, 1),
    algorithm: 'windows by the clock of the rate limit service',
    source: ENVOY_GLOBAL,
  },
  {
    name: 'Envoy global 100/60s',
    limiter: clock(100, 60),
    algorithm: 'windows by the clock of the rate limit service',
    source: ENVOY_GLOBAL,
  },
  {
    name: 'Envoy local 20 each 1 s',
    limiter: refill(20, 1),
    algorithm: 'bucket that is refilled by a timer',
    source: ENVOY_LOCAL,
  },
  {
    name: 'Envoy local 100 each 10 s b200',
    limiter: refill(100, 10, 200),
    algorithm: 'bucket that is refilled by a timer',
    source: ENVOY_LOCAL,
  },
  {
    name: 'nginx 10/s b20 nodelay',
    limiter: nginx(10, 20),
    algorithm: 'leaky bucket, counted in milliseconds',
    source: NGINX,
  },
  {
    name: 'nginx 10/s b0',
    limiter: nginx(10, 0),
    algorithm: 'leaky bucket without burst: one call in 100 ms',
    source: NGINX,
  },
  {
    name: 'nginx 10/s b20 held back',
    limiter: nginx(10, 20, true),
    algorithm: 'leaky bucket; calls of the burst are delayed',
    source: NGINX,
  },
  {
    name: 'nginx 100/s b50 nodelay',
    limiter: nginx(100, 50),
    algorithm: 'leaky bucket, counted in milliseconds',
    source: NGINX,
  },
  {
    name: 'HAProxy rate 100/10s rc',
    limiter: counter(100, 10, true),
    algorithm: 'sliding counter of two periods; refused calls count',
    source: HAPROXY,
  },
  {
    name: 'HAProxy rate 20/1s rc',
    limiter: counter(20, 1, true),
    algorithm: 'sliding counter of two periods; refused calls count',
    source: HAPROXY,
  },
  {
    name: 'Tyk log 60/10s rc',
    limiter: log(60, 10, true),
    algorithm: 'sliding log in Redis; refused calls count',
    source: { title: 'Session limiter, source code', where: 'TykTechnologies/tyk, gateway/session_manager.go' },
  },
  {
    name: '4 nodes x 25/10s, by turns',
    limiter: nodes(4, clock(25, 10), 'turns'),
    algorithm: 'each node counts windows by the clock; the balancer takes turns',
    source: KONG_LOCAL,
    assumed: 'windows of 10 s',
  },
  {
    name: '4 nodes x 25/10s, random',
    limiter: nodes(4, clock(25, 10), 'random'),
    algorithm: 'each node counts windows by the clock; the balancer chooses at random',
    source: KONG_LOCAL,
    assumed: 'windows of 10 s',
  },
  {
    name: '3 nodes x 5/s b10, random',
    limiter: nodes(3, bucket(5, 10), 'random'),
    algorithm: 'each node has a token bucket; the balancer chooses at random',
    source: ENVOY_LOCAL,
    assumed: 'that the bucket refills evenly',
  },
  {
    name: '2 nodes x 30/60s, random',
    limiter: nodes(2, clock(30, 60), 'random'),
    algorithm: 'each node counts windows by the clock; the balancer chooses at random',
    source: KONG_LOCAL,
  },
  {
    name: 'Apigee SpikeArrest 10/s',
    limiter: { kind: 'gcra', perSecond: 10, burst: 1 },
    algorithm: 'smoothed: one call in 100 ms',
    source: { title: 'SpikeArrest policy', where: `${APIGEE}spike-arrest-policy` },
  },
  {
    name: 'Apigee quota 1000/300s first call',
    limiter: firstCall(1000, 300),
    algorithm: 'quota of the type flexi: the first call opens the window',
    source: { title: 'Quota policy', where: `${APIGEE}quota-policy` },
  },
];
