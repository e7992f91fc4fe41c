/** `listen.allow` in its two forms, the text of a variable and the list of a file. */
import { describe, expect, test } from 'vitest';
import { configOf, problemsOf, scratchFile } from '../../base-env.ts';

const VARIABLE = 'SIDECAR_LISTEN_ALLOW';
const QUOTES = { methods: ['GET', 'POST'], path: '/quotes' };

describe('the text of a variable', () => {
  test.each([
    ['GET,POST /quotes', [QUOTES]],
    ['GET,POST /quotes; GET /policies/v1;', [QUOTES, { methods: ['GET'], path: '/policies/v1' }]],
    [' * / ', [{ methods: undefined, path: '/' }]],
    ['M-SEARCH  /a.b/c~d', [{ methods: ['M-SEARCH'], path: '/a.b/c~d' }]],
  ])('%j is read', (text, rules) => {
    expect(configOf({ [VARIABLE]: text }).listen.allow).toEqual(rules);
  });

  test.each([
    ['/quotes', 'expected methods, a blank and a path'],
    ['GET', 'expected methods, a blank and a path'],
    ['GET, POST /quotes', 'expected methods, a blank and a path'],
    ['GET /a;;GET /b', 'expected methods, a blank and a path'],
    ['get /quotes', '"get" is not a method that is forwarded'],
    ['GTE /quotes', '"GTE" is not a method that is forwarded'],
    ['CONNECT /quotes', '"CONNECT" is not a method that is forwarded'],
    ['GET,* /quotes', '"*" is not a method that is forwarded'],
    ['GET quotes', 'expected a path such as /quotes'],
    ['GET /quotes/', 'expected a path such as /quotes'],
    ['GET //quotes', 'expected a path such as /quotes'],
    ['GET /quotes?x', 'expected a path such as /quotes'],
    ['GET /a/../b', 'expected a path such as /quotes'],
    ['GET /quotes/*', 'expected a path such as /quotes'],
    ['GET /qu%6ftes', 'expected a path such as /quotes'],
  ])('%j is refused', (text, fault) => {
    const [problem, ...more] = problemsOf({ [VARIABLE]: text });
    expect(problem).toMatch(/^listen\.allow \(SIDECAR_LISTEN_ALLOW\): found /);
    expect(problem).toContain(fault);
    expect(more).toEqual([]);
  });
});

describe('a file', () => {
  const fromFile = (yaml: string) => ({ file: scratchFile(`listen:\n  allow: ${yaml}\n`, 'config.yaml') });

  test.each([
    ['[ { methods: [GET, POST], path: /quotes } ]', [QUOTES]],
    [
      '[ { methods: GET, path: /quotes }, "POST /a" ]',
      [
        { methods: ['GET'], path: '/quotes' },
        { methods: ['POST'], path: '/a' },
      ],
    ],
    ['[ { path: /quotes } ]', [{ methods: undefined, path: '/quotes' }]],
    ['GET,POST /quotes', [QUOTES]],
    ['[]', []],
  ])('%s is read', (yaml, rules) => {
    expect(configOf({}, fromFile(yaml)).listen.allow).toEqual(rules);
  });

  test.each([
    '[ { methods: [GET] } ]',
    '[ { methods: [], path: /quotes } ]',
    '[ { methods: [GET, 1], path: /quotes } ]',
    '[ { methods: [GET], paths: /quotes } ]',
    '[ { methods: [GET], path: /quotes, host: x } ]',
    '[ 1 ]',
    '[ [ GET ] ]',
    '{ path: /quotes }',
    'true',
  ])('%s is refused', (yaml) => {
    expect(problemsOf({}, fromFile(yaml))).toEqual([expect.stringMatching(/^listen\.allow/)]);
  });
});

test('is empty by default, which allows everything', () => {
  expect(configOf().listen.allow).toEqual([]);
});
