/** Limits of hosted services, by their documentation (pure). */
import { allOf, bucket, clock, counter, firstCall, inFlight, log, weighted, withPenalty } from './notation.ts';
import type { Product, Source } from './products.ts';

const SP_API: Source = {
  title: 'Usage Plans and Rate Limits in the SP-API; Orders API Rate Limits',
  where: 'https://developer-docs.amazon.com/sp-api/docs/orders-api-rate-limits',
};
const SHOPIFY: Source = {
  title: 'REST Admin API rate limits; Shopify API rate limits',
  where: 'https://shopify.dev/docs/api/admin-rest/usage/rate-limits, https://shopify.dev/docs/api/usage/rate-limits',
};
const STRIPE: Source = {
  title: 'Rate limits; Scaling your API with rate limiters',
  where: 'https://docs.stripe.com/rate-limits, https://stripe.com/blog/rate-limiters',
};
const GITHUB: Source = {
  title: 'Rate limits for the REST API: about secondary rate limits',
  where: 'github/docs, data/reusables/rest-api/secondary-rate-limit-rest-graphql.md',
};
const CLOUDFLARE: Source = {
  title: 'How we built rate limiting capable of scaling to millions of domains; Rate limiting rules',
  where:
    'https://blog.cloudflare.com/counting-things-a-lot-of-different-things/, https://developers.cloudflare.com/waf/rate-limiting-rules/',
};
const SHEETS: Source = { title: 'Usage limits', where: 'https://developers.google.com/workspace/sheets/api/limits' };
const STRIPE_CALL = { base: 400, jitter: 200 };

export const SERVICE_PRODUCTS: readonly Product[] = [
  {
    name: 'Amazon SP-API .5/s b30',
    limiter: bucket(0.5, 30),
    algorithm: 'token bucket',
    source: SP_API,
  },
  {
    name: 'Amazon SP-API .0167/s b20',
    limiter: bucket(0.0167, 20),
    algorithm: 'token bucket',
    source: SP_API,
  },
  {
    name: 'Shopify 2/s b40',
    limiter: bucket(2, 40),
    algorithm: 'leaky bucket that leaks continuously',
    source: SHOPIFY,
  },
  {
    name: 'Shopify Plus 20/s b400',
    limiter: bucket(20, 400),
    algorithm: 'leaky bucket that leaks continuously',
    source: SHOPIFY,
    assumed: 'the size of the bucket',
  },
  {
    name: 'Shopify GraphQL cost 50u/s b1000',
    limiter: weighted(bucket(50, 1000), [5, 0.3], [10, 0.4], [20, 0.3]),
    algorithm: 'leaky bucket; a call costs 5, 10 or 20 points',
    source: {
      title: 'Rate limits of the GraphQL Admin API, as of 2023',
      where: 'https://community.shopify.com/t/api-rate-limits-question/232461/2',
    },
    assumed: 'the size of the bucket and the mixture of costs',
  },
  {
    name: 'Stripe 25/s b50 + 20 in flight',
    limiter: allOf(bucket(25, 50), inFlight(20)),
    algorithm: 'token bucket and a limit on calls in flight',
    source: STRIPE,
    assumed: 'the burst and the service time',
    serviceMs: STRIPE_CALL,
  },
  {
    name: 'Stripe 25/s b50 + 8 in flight',
    limiter: allOf(bucket(25, 50), inFlight(8)),
    algorithm: 'token bucket and a limit on calls in flight',
    source: STRIPE,
    assumed: 'the burst, the 8 calls and the service time',
    serviceMs: STRIPE_CALL,
  },
  {
    name: 'GitHub 900 points/60s',
    limiter: weighted(clock(900, 60), [1, 0.8], [5, 0.2]),
    algorithm: 'points per minute: a read costs 1, a write 5',
    source: GITHUB,
    assumed: 'windows by the clock, and the mixture',
  },
  {
    name: 'GitHub content 80/60s + 500/h',
    limiter: allOf(clock(80, 60), clock(500, 3600)),
    algorithm: 'two windows',
    source: GITHUB,
    assumed: 'windows by the clock',
  },
  {
    name: 'GitHub 80/60s, 60 s pause',
    limiter: withPenalty(clock(80, 60), 60),
    algorithm: 'window; a refusal closes it for 60 s',
    source: GITHUB,
    assumed: 'windows by the clock, and that no call is accepted in the minute that clients have to wait',
  },
  {
    name: 'Salesforce 5 long calls',
    limiter: inFlight(5),
    algorithm: 'limit on calls in flight, of those that last 20 s or longer',
    source: {
      title: 'API Request Limits and Allocations: concurrent API request limits',
      where:
        'https://developer.salesforce.com/docs/platform/salesforce-app-limits-cheatsheet/guide/salesforce-app-limits-platform-api.html',
    },
    assumed: 'that a call counts from its start',
    serviceMs: { base: 20_000, jitter: 10_000 },
  },
  {
    name: 'Cloudflare counter 100/10s',
    limiter: counter(100, 10),
    algorithm: 'sliding counter of two windows; calls above the rate are refused (throttle)',
    source: CLOUDFLARE,
  },
  {
    name: 'Cloudflare 100/10s, blocks 10 s',
    limiter: withPenalty(counter(100, 10), 10),
    algorithm: 'sliding counter of two windows; a refusal blocks for the mitigation timeout',
    source: CLOUDFLARE,
  },
  {
    name: 'Cloudflare 50/60s, blocks 60 s',
    limiter: withPenalty(counter(50, 60), 60),
    algorithm: 'sliding counter of two windows; a refusal blocks for the mitigation timeout',
    source: CLOUDFLARE,
  },
  {
    name: 'Google 100/100s + 75/60s',
    limiter: allOf(clock(100, 100), clock(75, 60)),
    algorithm: 'two windows',
    source: {
      title: 'Insufficient tokens for quota ReadGroup and limit USER-100s (quotes the former limit of the Sheets API)',
      where: 'https://github.com/burnash/gspread/issues/583',
    },
    assumed: 'windows by the clock; 75 per 60 s was not found',
  },
  {
    name: 'Google 60/60s',
    limiter: clock(60, 60),
    algorithm: 'quota per minute, refilled every minute',
    source: SHEETS,
  },
  {
    name: 'Google 1000/100s',
    limiter: clock(1000, 100),
    algorithm: 'quota per 100 s',
    source: {
      title: 'Need explanation of 403 rate limit exceeded (quotes the former limit of the Drive API)',
      where: 'https://github.com/prasmussen/gdrive/issues/435',
    },
    assumed: 'windows by the clock',
  },
  {
    name: 'Okta 600/60s + 20 in flight',
    limiter: allOf(clock(600, 60), inFlight(20)),
    algorithm: 'window and a limit on calls in flight',
    source: {
      title: 'Rate limits: concurrent rate limits',
      where: 'https://developer.okta.com/docs/reference/rl-additional-limits/',
    },
    assumed: 'the 600 per minute by the clock, 20 calls (35 or 75 are documented), and the service time',
    serviceMs: { base: 1000, jitter: 1000 },
  },
  {
    name: 'HubSpot 100/10s log',
    limiter: log(100, 10),
    algorithm: 'sliding log',
    source: {
      title: 'What are the best limiter settings for TEN_SECONDLY_ROLLING (with a reply of the service)',
      where: 'https://github.com/HubSpot/hubspot-api-nodejs/issues/416',
    },
  },
  {
    name: 'HubSpot 190/10s clock',
    limiter: clock(190, 10),
    algorithm: 'windows by the clock',
    source: {
      title: 'Increasing our API limits',
      where: 'https://developers.hubspot.com/changelog/increasing-our-api-limits',
    },
    assumed: 'windows by the clock, although the policy is called rolling',
  },
  {
    name: 'Discord 5/5s first + 50/s',
    limiter: allOf(firstCall(5, 5), clock(50, 1)),
    algorithm: 'window from the first call for a route, and a global window',
    source: {
      title: 'My Bot is Being Rate Limited; Bot message rate limit',
      where:
        'https://support-dev.discord.com/hc/en-us/articles/6223003921559, https://github.com/discord/discord-api-docs/issues/20',
    },
    assumed: 'that the first call opens the window of 5 s',
  },
  {
    name: 'Twitter 900/900s first call',
    limiter: firstCall(900, 900),
    algorithm: 'window of 15 minutes',
    source: { title: 'Rate limits', where: 'https://developer.x.com/en/docs/twitter-api/rate-limits' },
    assumed: 'that the first call opens the window',
  },
  {
    name: 'Airtable 5/s, 30 s penalty',
    limiter: withPenalty(clock(5, 1), 30),
    algorithm: 'window; after a refusal all calls fail for 30 s',
    source: {
      title: 'Managing API call limits in Airtable',
      where: 'https://support.airtable.com/docs/managing-api-call-limits-in-airtable',
    },
    assumed: 'windows by the clock',
  },
  {
    name: 'MS Graph 10000/600s + 4 in flight',
    limiter: allOf(log(10_000, 600), inFlight(4)),
    algorithm: 'window and a limit on calls in flight, for each mailbox',
    source: {
      title: 'Microsoft Graph throttling limits: Outlook service limits',
      where: 'https://learn.microsoft.com/en-us/graph/throttling-limits#outlook-service-limits',
    },
    assumed: 'that the window slides, and the service time',
    serviceMs: { base: 200, jitter: 100 },
  },
  {
    name: 'Slack 50/60s + burst',
    limiter: bucket(50 / 60, 25),
    algorithm: 'rate per minute with room for bursts: a bucket',
    source: {
      title: 'Rate limits: tier 3; Rate-Limiting is not handled gracefully (measured: a bucket of 25)',
      where:
        'https://docs.slack.dev/apis/web-api/rate-limits, https://github.com/RamblingCookieMonster/PSSlack/issues/52',
    },
    assumed: 'the burst of tier 3',
  },
  {
    name: 'Zendesk 200/60s',
    limiter: clock(200, 60),
    algorithm: 'requests of the current minute',
    source: { title: 'Rate limits', where: 'https://developer.zendesk.com/api-reference/introduction/rate-limits' },
  },
  {
    name: 'Notion 3/s b10',
    limiter: bucket(3, 10),
    algorithm: 'average rate with bursts: a bucket',
    source: { title: 'Request limits', where: 'https://developers.notion.com/reference/request-limits.md' },
    assumed: 'the burst',
  },
  {
    name: 'Dropbox 1000/300s log',
    limiter: log(1000, 300),
    algorithm: 'sliding log',
    source: 'not found',
    assumed: 'all: the DBX Performance Guide states that figures are not published, and that refused calls count',
  },
];
