"""The client of the step protocol for programs in a sandbox, for Python 3.9 and later."""

import datetime
import http.client
import json
import os
import urllib.parse

_connection = None
_in_step = False


class CallError(Exception):
    """A call did not work. Uncaught, it ends the run with the code of what failed."""

    def __init__(self, message, code=None, status=None):
        super().__init__(message)
        self.code = code
        self.status = status


class Transient(Exception):
    """Raised by the function of a step that may work a little later."""


def _send(method, path, body=None):
    global _connection
    if _connection is None:
        _connection = http.client.HTTPConnection(urllib.parse.urlsplit(os.environ["WAYBILL_STEP_URL"]).netloc)
    text = None if body is None else json.dumps(body, allow_nan=False).encode()
    headers = {"authorization": "Bearer " + os.environ["WAYBILL_STEP_TOKEN"], "content-type": "application/json"}
    _connection.request(method, path, text, headers)
    response = _connection.getresponse()
    answer = json.loads(response.read())
    if response.status != 200:
        raise CallError(answer.get("error"), answer.get("code"), response.status)
    return answer


def _call(path, body):
    if _in_step:
        raise CallError("the function of a step makes no calls of its own", "refused", 409)
    return _send("POST", path, body)


def given():
    """All that the run was given: `input`, and `messages` in a turn of a session."""
    return _send("GET", "/v0/input")


def input():
    """The input of the run."""
    return given()["input"]


def step(name, make, input=None, effect="idempotent"):
    """Calls `make` once for the run, however often the program begins again, and gives what it returned, as JSON has it."""
    global _in_step
    begun = _call("/v0/steps", {"name": name, "input": input, "effect": effect})
    if begun["cached"]:
        return begun["output"]
    path = "/v0/steps/" + begun["stepId"]
    while True:
        _in_step = True
        try:
            output = make()
        except Exception as error:
            _in_step = False
            said = {"error": str(error)[:10000], "transient": isinstance(error, Transient)}
            if not _send("POST", path + "/fail", said)["retry"]:
                raise
            continue
        finally:
            _in_step = False
        _send("POST", path + "/complete", {"output": output})
        return output


def model(prompt=None, **asked):
    """`{"text", "stop"}` for a prompt, or for messages, with system, maxOutputTokens and temperature."""
    return _call("/v0/model", asked if prompt is None else {"prompt": prompt, **asked})


def tool(name, **arguments):
    """What a tool of the manifest gave."""
    return _call("/v0/tool", {"name": name, "arguments": arguments})["output"]


def approval(prompt):
    """`{"approved", "comment", "answer"}`, once a human has decided."""
    return _call("/v0/approval", {"prompt": prompt})


def sleep(time):
    """Seconds, or a datetime with a zone. The program begins again after a long one."""
    timed = isinstance(time, datetime.datetime)
    return _call("/v0/sleep", {"until": time.isoformat()} if timed else {"seconds": time})


def finish(output=None):
    """The output of the run. Nothing after it is certain to be executed."""
    return _call("/v0/finish", {"output": output})
