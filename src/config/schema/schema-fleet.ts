/**
 * The part of the schema that joins replicas into a fleet: where their Redis is, and how long one of its answers is waited for.
 */
import { matching, text, wholeNumber } from './formats/formats.ts';
import { redisUrl } from './formats/redis-url.ts';
import { setting, settingWithoutDefault } from './setting.ts';

export const fleet = {
  redisUrl: settingWithoutDefault({
    doc: 'Redis (7 or later) or Valkey through which replicas share one token for each credential and one quota for each throttle: throttle.rate and what is learned are those of all together. Without it, and without fleet.redisUrlFile, this process is alone. A password in it is a secret.',
    format: redisUrl(),
    env: 'SIDECAR_REDIS_URL',
  }),
  redisUrlFile: settingWithoutDefault({
    doc: 'File that holds the URL of fleet.redisUrl; one line end at its end is dropped. Read anew for every connection.',
    format: text('a path'),
    env: 'SIDECAR_REDIS_URL_FILE',
  }),
  caFile: settingWithoutDefault({
    doc: 'PEM file of the certificate authorities to trust for a rediss: URL, instead of the built-in roots. Read anew for every connection.',
    format: text('a path'),
    env: 'SIDECAR_FLEET_CA_FILE',
  }),
  keyPrefix: setting({
    doc: 'What the name of every key begins with, a colon after it. Replicas with different ones share nothing.',
    format: matching(/^[\w.:-]{1,64}$/, '1 to 64 letters, digits or characters of "_.:-"'),
    default: 'bearer-sidecar',
    env: 'SIDECAR_FLEET_KEY_PREFIX',
  }),
  timeoutMs: setting({
    doc: 'Longest wait for the answer to one command; past it, this process goes on by itself.',
    format: wholeNumber(1, 1000),
    default: 25,
    env: 'SIDECAR_FLEET_TIMEOUT_MS',
  }),
};
