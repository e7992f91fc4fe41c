/** Any code point but halves of surrogate pairs, as `unit` of `fc.string`: fast-check's own, `binary`, first builds a map of a million of them. */
import fc from 'fast-check';

const FIRST_SURROGATE = 0xd800;
const SURROGATES = 0x800;

export const anyCodePoint = fc
  .integer({ min: 0, max: 0x10ffff - SURROGATES })
  .map((rank) => String.fromCodePoint(rank < FIRST_SURROGATE ? rank : rank + SURROGATES));
