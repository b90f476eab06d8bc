"""Events, in the core group and in the group of their own."""

from __future__ import annotations

TEXT = """
Event: Something that happened to an object, told by whoever saw it.
  action              string           What was done.
  apiVersion          string           API group and version this object is written in.
  count               int32            How often it happened.
  eventTime           MicroTime        When it was first seen.
  firstTimestamp      Time             When it was first seen, in the older form.
  involvedObject!     ObjectReference  The object it is about.
  kind                string           Kind of the object.
  lastTimestamp       Time             When it was last seen.
  message             string           What happened, for people.
  metadata!           ObjectMeta       Name, labels and what the server keeps about the object.
  reason              string           One word for programs: why it happened.
  related             ObjectReference  A second object that had a part in it.
  reportingComponent  string           Who reports it.
  reportingInstance   string           Which instance reports it.
  series              EventSeries      How it goes on, where it keeps happening.
  source              EventSource      Who reports it, in the older form.
  type                string           Normal or Warning.

EventSeries: An event that keeps happening.
  count             int32      How often it happened.
  lastObservedTime  MicroTime  When it was last seen.

EventSource: Who reports an event.
  component  string  The program.
  host       string  The node it runs on.
"""

EVENTS_GROUP = """
Event: Something that happened to an object, told by whoever saw it.
  action                    string           What was done.
  apiVersion                string           API group and version this object is written in.
  deprecatedCount           int32            How often it happened, in the older form.
  deprecatedFirstTimestamp  Time             When it was first seen, in the older form.
  deprecatedLastTimestamp   Time             When it was last seen, in the older form.
  deprecatedSource          EventSource      Who reports it, in the older form.
  eventTime!                MicroTime        When it was first seen.
  kind                      string           Kind of the object.
  metadata                  ObjectMeta       Name, labels and what the server keeps about the object.
  note                      string           What happened, for people.
  reason                    string           One word for programs: why it happened.
  regarding                 ObjectReference  The object it is about.
  related                   ObjectReference  A second object that had a part in it.
  reportingController       string           Who reports it.
  reportingInstance         string           Which instance reports it.
  series                    EventSeries      How it goes on, where it keeps happening.
  type                      string           Normal or Warning.

EventSeries: An event that keeps happening.
  count!             int32      How often it happened.
  lastObservedTime!  MicroTime  When it was last seen.
"""
