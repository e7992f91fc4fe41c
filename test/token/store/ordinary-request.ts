/** The members of a binding that are the same for every request by RFC 6749 §4.4, and a generator of whole bindings. */
import fc from 'fast-check';
import type { TokenBinding } from '../../../src/token/store/sealed-token.ts';

export const ORDINARY_REQUEST = {
  bodyFormat: 'form',
  assertion: undefined,
  responseFields: ['access_token', 'expires_in', 'seconds'],
  tokenHeaders: ['authorization: Bearer '],
} as const;

export const bindings: fc.Arbitrary<TokenBinding> = fc.record({
  tokenUrl: fc.string(),
  clientId: fc.string(),
  method: fc.string(),
  requestedParameters: fc.array(fc.tuple(fc.string(), fc.string()), { maxLength: 3 }),
  bodyFormat: fc.constantFrom('form', 'json'),
  assertion: fc.option(
    fc.record({ audience: fc.string(), claims: fc.dictionary(fc.string(), fc.jsonValue(), { maxKeys: 2 }) }),
    { nil: undefined },
  ),
  responseFields: fc.array(fc.string(), { maxLength: 3 }),
  tokenHeaders: fc.array(fc.string(), { maxLength: 2 }),
});
