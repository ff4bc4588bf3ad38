// Loaded before the suite, whose own servers would listen on every interface: this keeps them on 127.0.0.1.
'use strict';
const { Server } = require('node:net');

const listen = Server.prototype.listen;
Server.prototype.listen = function (port, ...rest) {
  const bare = /^\d+$/.test(String(port)) && typeof rest[0] !== 'string';
  if (!bare) return listen.call(this, port, ...rest);
  const callback = rest.findLast(argument => typeof argument === 'function');
  if (callback) this.once('listening', callback);
  // The suite reads address() right away, so the socket has to be bound now. listen(port, host) looks the host up first.
  this._listen2('127.0.0.1', Number(port), 4, 511, undefined, 0);
  return this;
};
