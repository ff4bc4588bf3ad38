// The server behind Mainstem when the official conformance suite runs: it has every tool, prompt and resource that
// the suite asks for, and behaves. Both eras are on one URL, sessions up to 2025-11-25 and none in 2026-07-28.
// usage: NODE_PATH=…/node_modules node fixture.cjs PORT     (the endpoint is http://127.0.0.1:PORT/mcp)
'use strict';
const { createServer } = require('node:http');
const { randomBytes, randomUUID } = require('node:crypto');
const mcp = require('@modelcontextprotocol/server');
const node = require('@modelcontextprotocol/node');

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=';
const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
const text = t => ({ type: 'text', text: t });
const image = { type: 'image', data: PNG, mimeType: 'image/png' };
const result = (...content) => ({ content });
const object = (properties = {}, required = []) => ({ type: 'object', properties, required });
const string = description => ({ type: 'string', description });

// Asking the client: the SDK sends a 2026-07-28 client an input_required result and an older one a request of its own.
const { elicit, createMessage, listRoots } = mcp.inputRequired;
const form = (message, requestedSchema) => elicit({ mode: 'form', message, requestedSchema });
const sampling = (prompt, maxTokens = 100) =>
  createMessage({ messages: [{ role: 'user', content: text(prompt) }], maxTokens });
const ask = (inputRequests, requestState) => mcp.inputRequired({ inputRequests, requestState });
const answer = (ctx, key) => mcp.inputResponse(ctx.mcpReq.inputResponses, key);
const outcome = a => `action=${a.action}, content=${JSON.stringify(a.content ?? {})}`;
const nameForm = question => form(question, object({ name: { type: 'string' } }, ['name']));

const state = mcp.createRequestStateCodec({ key: randomBytes(32), bind: ctx => ctx.mcpReq.method });

const personForm = {
  type: 'object',
  properties: {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  },
};
const titled = (...titles) => titles.map((title, i) => ({ const: `value${i + 1}`, title }));
const options = ['option1', 'option2', 'option3'];
const choicesForm = {
  type: 'object',
  properties: {
    untitledSingle: { type: 'string', enum: options },
    titledSingle: { type: 'string', oneOf: titled('First Option', 'Second Option', 'Third Option') },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['Option One', 'Option Two', 'Option Three'] },
    untitledMulti: { type: 'array', items: { type: 'string', enum: options } },
    titledMulti: { type: 'array', items: { anyOf: titled('First Choice', 'Second Choice', 'Third Choice') } },
  },
};
const schema202012 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: {
    address: { $anchor: 'addressDef', type: 'object', properties: { street: { type: 'string' }, city: { type: 'string' } } },
  },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
};

// name: [description, input schema, handler(args, ctx)]
const tools = {
  test_simple_text: ['Returns one text block', object(), () => result(text('This is a simple text response for testing.'))],
  test_image_content: ['Returns an image', object(), () => result(image)],
  test_audio_content: ['Returns audio', object(), () => result({ type: 'audio', data: WAV, mimeType: 'audio/wav' })],
  test_embedded_resource: ['Returns an embedded resource', object(), () =>
    result(embedded('test://embedded-resource', 'text/plain', 'This is an embedded resource content.'))],
  test_multiple_content_types: ['Returns text, an image and a resource', object(), () =>
    result(text('Multiple content types test:'), image,
      embedded('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'))],
  test_error_handling: ['Always fails', object(), () =>
    ({ isError: true, ...result(text('This tool intentionally returns an error for testing')) })],
  test_tool_with_logging: ['Sends three log messages while it runs', object(), logThreeTimes],
  test_logging_tool: ['Sends three log messages while it runs', object(), logThreeTimes],
  test_tool_with_progress: ['Reports progress three times while it runs', object(), async (args, ctx) => {
    const progressToken = ctx.mcpReq._meta?.progressToken;
    for (const progress of [0, 50, 100]) {
      if (progressToken !== undefined)
        await ctx.mcpReq.notify({ method: 'notifications/progress', params: { progressToken, progress, total: 100 } });
      await sleep(50);
    }
    return result(text('progress reported'));
  }],
  test_reconnection: ['Closes its own event stream while it runs and answers on the resumed one', object(), async (args, ctx) => {
    ctx.http?.closeSSE?.();
    await sleep(1500); // the client comes back within the `retry` that the stream announced
    return result(text('Reconnection test completed.'));
  }],
  json_schema_2020_12_tool: ['Has an input schema with JSON Schema 2020-12 keywords', schema202012, () => result(text('ok'))],
  test_x_mcp_header: ['Wants its region as an HTTP header too',
    object({ region: { ...string('Where to run'), 'x-mcp-header': 'Region' } }), args => result(text(`region ${args.region}`))],
  test_trigger_tool_change: ['Announces a changed tool list', object(), () => announce('tools')],
  test_trigger_prompt_change: ['Announces a changed prompt list', object(), () => announce('prompts')],

  test_sampling: ['Asks the client to sample', object({ prompt: string('What to ask') }, ['prompt']), (args, ctx) => {
    const a = answer(ctx, 'reply');
    return a.kind === 'sampling' ? result(text(`LLM response: ${a.result.content.text}`)) : ask({ reply: sampling(args.prompt) });
  }],
  test_elicitation: ['Asks the user for a name and an address', object({ message: string('What to show') }, ['message']), (args, ctx) =>
    elicitOnce(ctx, form(args.message, object({ username: string("User's response"), email: string("User's email address") },
      ['username', 'email'])), a => `User response: ${outcome(a)}`)],
  test_elicitation_sep1034_defaults: ['Asks with a default for every field', object(), (args, ctx) =>
    elicitOnce(ctx, form('Please review the values', personForm), a => `Elicitation completed: ${outcome(a)}`)],
  test_elicitation_sep1330_enums: ['Asks with every kind of choice', object(), (args, ctx) =>
    elicitOnce(ctx, form('Please choose', choicesForm), a => `Elicitation completed: ${outcome(a)}`)],
  test_missing_capability: ['Needs sampling', object(), (args, ctx) =>
    (answer(ctx, 'reply').kind === 'sampling' ? result(text('sampled')) : ask({ reply: sampling('Say hello') }))],
  test_streaming_elicitation: ['Asks the user for a name', object(), (args, ctx) =>
    elicitOnce(ctx, nameForm('What is your name?'), outcome, 'user_name')],

  test_input_required_result_elicitation: ['Asks the user for a name', object(), (args, ctx) => {
    const a = answer(ctx, 'user_name');
    return typeof a.content?.name === 'string'
      ? result(text(`Hello, ${a.content.name}!`)) : ask({ user_name: nameForm('What is your name?') });
  }],
  test_input_required_result_sampling: ['Asks the client to sample', object(), (args, ctx) => {
    const a = answer(ctx, 'capital_question');
    return a.kind === 'sampling'
      ? result(text(a.result.content.text)) : ask({ capital_question: sampling('What is the capital of France?') });
  }],
  test_input_required_result_list_roots: ['Asks the client for its roots', object(), (args, ctx) => {
    const a = answer(ctx, 'client_roots');
    return a.kind === 'roots'
      ? result(text(`Roots: ${a.roots.map(r => r.uri).join(', ')}`)) : ask({ client_roots: listRoots() });
  }],
  test_input_required_result_request_state: ['Asks, and wants its state back', object(), confirmWithState],
  test_input_required_result_tampered_state: ['Asks, and refuses a changed state', object(), confirmWithState],
  test_input_required_result_multiple_inputs: ['Asks three things at once', object(), async (args, ctx) => {
    const all = ['user_name', 'greeting', 'client_roots'].every(key => answer(ctx, key).kind !== 'missing');
    return all ? result(text('all answered')) : ask(
      { user_name: nameForm('What is your name?'), greeting: sampling('Generate a greeting', 50), client_roots: listRoots() },
      await state.mint({ asked: 3 }, ctx));
  }],
  test_input_required_result_multi_round: ['Asks twice, one question after the other', object(), async (args, ctx) => {
    const before = ctx.mcpReq.requestState();
    if (!before) return ask({ step1: nameForm('Step 1: What is your name?') }, await state.mint({ round: 1 }, ctx));
    if (before.round === 1) {
      const name = answer(ctx, 'step1').content?.name;
      const color = form('Step 2: What is your favorite color?', object({ color: { type: 'string' } }, ['color']));
      return ask({ step2: color }, await state.mint({ round: 2, name }, ctx));
    }
    return result(text(`${before.name} likes ${answer(ctx, 'step2').content?.color}`));
  }],
  test_input_required_result_capabilities: ['Asks only for what the client declared', object(), (args, ctx) => {
    const declared = ctx.mcpReq.envelope?.[mcp.CLIENT_CAPABILITIES_META_KEY] ?? {};
    const wanted = {};
    if (declared.elicitation) wanted.name = nameForm('What is your name?');
    if (declared.sampling) wanted.greeting = sampling('Generate a greeting');
    const missing = Object.keys(wanted).filter(key => answer(ctx, key).kind === 'missing');
    return missing.length ? ask(wanted) : result(text('nothing more to ask'));
  }],
};

function embedded(uri, mimeType, t) {
  return { type: 'resource', resource: { uri, mimeType, text: t } };
}
async function logThreeTimes(args, ctx) {
  for (const message of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
    await ctx.mcpReq.log('info', message);
    await sleep(50);
  }
  return result(text('logged'));
}
function elicitOnce(ctx, request, say, key = 'user') {
  const a = answer(ctx, key);
  return a.kind === 'elicit' ? result(text(say(a))) : ask({ [key]: request });
}
async function confirmWithState(args, ctx) {
  if (ctx.mcpReq.requestState()?.confirming && answer(ctx, 'confirm').kind === 'elicit') return result(text('state-ok'));
  const confirm = form('Please confirm', object({ ok: { type: 'boolean' } }, ['ok']));
  return ask({ confirm }, await state.mint({ confirming: true }, ctx));
}

const user = content => ({ role: 'user', content });
const prompts = {
  test_simple_prompt: ['A prompt without arguments', [], () => [user(text('This is a simple prompt for testing.'))]],
  test_prompt_with_arguments: ['A prompt with two arguments', ['arg1', 'arg2'], a =>
    [user(text(`Prompt with arguments: arg1='${a.arg1}', arg2='${a.arg2}'`))]],
  test_prompt_with_embedded_resource: ['A prompt with a resource in it', ['resourceUri'], a =>
    [user(embedded(a.resourceUri, 'text/plain', 'Embedded resource content for testing.')),
      user(text('Please process the embedded resource above.'))]],
  test_prompt_with_image: ['A prompt with an image in it', [], () => [user(image), user(text('Please analyze the image above.'))]],
  test_input_required_result_prompt: ['A prompt that asks the user first', [], (a, ctx) => {
    const context = answer(ctx, 'user_context').content?.context;
    return context ? [user(text(`Context: ${context}`))] : ask({ user_context:
      form('What context should the prompt use?', object({ context: { type: 'string' } }, ['context'])) });
  }],
};

const resources = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PNG },
  'test://watched-resource': { mimeType: 'text/plain', text: 'Watch me.' },
};
const TEMPLATE = 'test://template/{id}/data';

function readResource(uri) {
  if (resources[uri]) return { contents: [{ uri, ...resources[uri] }] };
  const id = /^test:\/\/template\/([^/]+)\/data$/.exec(uri)?.[1];
  if (!id) throw new mcp.ResourceNotFoundError(uri);
  const body = JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` });
  return { contents: [{ uri, mimeType: 'application/json', text: body }] };
}

function newServer() {
  const server = new mcp.Server({ name: 'conformance-fixture', version: '1.0.0' }, {
    capabilities: {
      tools: { listChanged: true }, prompts: { listChanged: true }, resources: { subscribe: true, listChanged: true },
      completions: {}, logging: {},
    },
    cacheHints: Object.fromEntries(['tools/list', 'prompts/list', 'resources/list', 'resources/templates/list', 'resources/read']
      .map(method => [method, { ttlMs: 60000, cacheScope: 'public' }])),
    requestState: { verify: state.verify },
  });
  const on = (method, handler) => server.setRequestHandler(method, (request, ctx) => handler(request.params ?? {}, ctx));
  const unknown = what => { throw new mcp.ProtocolError(-32602, `Unknown ${what}`); };

  on('tools/list', () => ({ tools: Object.entries(tools).map(([name, [description, inputSchema]]) => ({ name, description, inputSchema })) }));
  on('tools/call', ({ name, arguments: args }, ctx) => (tools[name] ?? unknown(`tool: ${name}`))[2](args ?? {}, ctx));
  on('prompts/list', () => ({ prompts: Object.entries(prompts).map(([name, [description, args]]) =>
    ({ name, description, arguments: args.map(arg => ({ name: arg, description: `The ${arg}`, required: true })) })) }));
  on('prompts/get', async ({ name, arguments: args }, ctx) => {
    const messages = await (prompts[name] ?? unknown(`prompt: ${name}`))[2](args ?? {}, ctx);
    return Array.isArray(messages) ? { messages } : messages;
  });
  on('completion/complete', ({ argument }) => {
    const values = ['paris', 'park', 'party'].filter(v => v.startsWith(argument.value));
    return { completion: { values, total: values.length, hasMore: false } };
  });
  on('resources/list', () => ({ resources: Object.entries(resources).map(([uri, { mimeType }]) =>
    ({ uri, name: uri.slice('test://'.length), description: `The resource ${uri}`, mimeType })) }));
  on('resources/templates/list', () => ({ resourceTemplates: [
    { uriTemplate: TEMPLATE, name: 'template', description: 'One record by its id', mimeType: 'application/json' }] }));
  on('resources/read', ({ uri }) => readResource(uri));
  on('resources/subscribe', () => ({}));
  on('resources/unsubscribe', () => ({}));
  return server;
}

// One transport and server per session for clients up to 2025-11-25.
const sessions = new Map();

class EventLog { // what a resumed stream still has to get
  events = [];
  async storeEvent(stream, message) {
    this.events.push({ id: `${stream}:${this.events.length}`, stream, message });
    return this.events.at(-1).id;
  }
  async replayEventsAfter(id, { send }) {
    const i = this.events.findIndex(e => e.id === id);
    const stream = this.events[i]?.stream ?? '';
    for (const e of this.events.slice(i + 1)) if (e.stream === stream && e.message.jsonrpc) await send(e.id, e.message);
    return stream;
  }
}

async function serveSession(req, res, body) {
  const id = req.headers['mcp-session-id'];
  let session = sessions.get(id);
  if (!session) {
    if (id) return void res.writeHead(404, { 'content-type': 'application/json' })
      .end('{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}');
    const server = newServer();
    const transport = new node.NodeStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID, eventStore: new EventLog(), retryInterval: 500,
      onsessioninitialized: sid => void sessions.set(sid, session),
      onsessionclosed: sid => void sessions.delete(sid),
    });
    session = { server, transport };
    await server.connect(transport);
  }
  await session.transport.handleRequest(req, res, body);
}

const modern = mcp.createMcpHandler(newServer, { legacy: 'reject' });
const toModern = node.toNodeHandler(modern);

async function serveModern(req, res, body) {
  const header = disagreeingHeader(body ?? {}, req.headers);
  if (!header) return toModern(req, res, body);
  const error = { code: -32020, message: `${header} does not say what the arguments say` };
  res.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ jsonrpc: '2.0', id: body.id, error }));
}

// Mcp-Param-NAME must repeat each argument whose schema has x-mcp-header; the SDK checks it only for its high-level server.
function disagreeingHeader({ method, params }, headers) {
  const properties = (method === 'tools/call' && tools[params?.name]?.[1].properties) || {};
  for (const [key, { 'x-mcp-header': name }] of Object.entries(properties)) {
    const value = params.arguments?.[key];
    if (name && value != null && decodeHeader(headers[`mcp-param-${name.toLowerCase()}`]) !== String(value)) return `Mcp-Param-${name}`;
  }
}
function decodeHeader(value = '') {
  const encoded = /^=\?base64\?(.*)\?=$/.exec(value)?.[1];
  if (encoded === undefined) return value;
  const decoded = Buffer.from(encoded, 'base64');
  return decoded.toString('base64') === encoded ? decoded.toString() : undefined;
}

function announce(kind) {
  modern.notify[`${kind}Changed`]();
  for (const { server } of sessions.values()) server.notification({ method: `notifications/${kind}/list_changed` }).catch(() => {});
  return result(text(`${kind} list_changed sent`));
}

const goodHost = node.localhostHostValidation();
const goodOrigin = node.localhostOriginValidation();

createServer(async (req, res) => {
  if (!goodHost(req, res) || !goodOrigin(req, res)) return;
  if (new URL(req.url, 'http://localhost').pathname !== '/mcp') return void res.writeHead(404).end();
  try {
    const request = await node.toWebRequest(req);
    const body = req.method === 'POST' ? await request.clone().json().catch(() => undefined) : undefined;
    if (await mcp.isLegacyRequest(request)) await serveSession(req, res, body);
    else await serveModern(req, res, body);
  } catch (err) {
    console.error(err);
    if (!res.headersSent) res.writeHead(500);
    res.end();
  }
}).listen(Number(process.argv[2]), '127.0.0.1', () => console.error(`fixture on http://127.0.0.1:${process.argv[2]}/mcp`));
